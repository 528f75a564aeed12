"""What webhooks are made of, out and in: signatures, handshakes, and where a request has its id, type and key."""
