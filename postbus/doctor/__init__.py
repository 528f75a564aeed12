"""Checks of Postgres and of Postbus in it: what is asked, and what follows from the answers."""
