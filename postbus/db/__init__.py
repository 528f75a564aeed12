"""Access to Postgres: connections, migrations, the embedded server. The only folder that imports psycopg."""
