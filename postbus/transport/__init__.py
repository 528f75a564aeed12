"""How operations reach Postgres: by a pool of connections, or through a server by HTTP."""
