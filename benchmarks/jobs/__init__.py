"""What one process does in a round."""
