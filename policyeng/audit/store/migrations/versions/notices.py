"""Messages to send, and the last run of each estate that targets were notified of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "notices",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("estate", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("due", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("fault", sa.Text, nullable=False),
        sa.Column("sent", sa.String(40)),
        sa.Column("together", sa.Integer),
        sqlite_autoincrement=True,
    )
    op.create_index("notices_unsent", "notices", ["target", "sent"])
    op.create_table(
        "told",
        sa.Column("estate", sa.Text, primary_key=True),
        sa.Column("run", sa.Integer, nullable=False),
    )
