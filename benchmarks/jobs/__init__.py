"""What one process does in a round. Receiving and acking will be a job too."""
