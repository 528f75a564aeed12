"""The Python library: a bus, its streams, and what is published to and read from them."""
