"""What Alembic runs for a migration: on the connection of `running.migrate`, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
