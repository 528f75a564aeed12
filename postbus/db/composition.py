"""SQL that is put together from names, values and other SQL, safely: psycopg's composition."""

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

__all__ = ["SQL", "Composable", "Composed", "Identifier", "Literal"]
