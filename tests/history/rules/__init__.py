"""The promises that a history is checked against, a file for each kind."""
