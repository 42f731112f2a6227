"""Migration of a database to the newest version."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from policyeng.audit.store.tables import digest_of

_LOCK = int(digest_of(b"policyeng migrations")[:15], 16)


def migrate(engine: Engine) -> None:
    """Run the missing migrations, all or none, in one process at a time."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    with engine.connect().execution_options(policyeng_writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
