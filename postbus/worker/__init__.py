"""A worker: receives messages, calls a handler for each, and acks or nacks them."""
