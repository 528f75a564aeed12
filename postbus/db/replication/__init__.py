"""Logical replication: the conversation with a walsender, and what the plugin pgoutput says."""
