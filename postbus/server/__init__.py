"""The HTTP server: Sequin's API of 2024 on Postbus, with tokens, health and metrics.

`endpoints/` says what can be asked; `application.py` puts them together; `run.py` serves them.
"""
