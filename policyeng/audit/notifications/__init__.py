"""Tell owners what is new and what is fixed."""
