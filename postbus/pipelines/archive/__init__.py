"""Archives a stream: files of its messages, listed in Postgres."""
