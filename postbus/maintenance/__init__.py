"""Recurring work: redelivering, publishing scheduled messages, and maintaining the logs."""
