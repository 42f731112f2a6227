"""How the tables of the store came to be, for Alembic."""
