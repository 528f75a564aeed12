"""`postbus doctor`: looks for problems, and says what to do about them."""
