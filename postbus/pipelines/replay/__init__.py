"""Replays archived messages to a consumer or a stream."""
