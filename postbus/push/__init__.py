"""Sends the messages of push consumers to their endpoints."""
