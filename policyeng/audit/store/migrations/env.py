"""The environment of Alembic: the connection and transaction of `running.migrate`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
