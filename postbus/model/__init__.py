"""What things are: messages, streams, errors. Standard library only."""
