"""Requests to a Postbus server. The only folder that imports httpx."""
