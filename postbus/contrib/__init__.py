"""Integrations with frameworks. Each module needs its framework, and nothing of Postbus needs the modules."""
