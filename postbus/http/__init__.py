"""The way to a Postbus server; the only folder that imports httpx."""
