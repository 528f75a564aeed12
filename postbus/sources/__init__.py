"""Publishes the changes of Postgres tables to a stream: each transaction once, together with how far we are."""
