"""`postbus doctor`: what is wrong, or may become so, and what to do about it."""
