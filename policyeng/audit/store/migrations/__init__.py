"""Migrations of the tables of the store, for Alembic."""
