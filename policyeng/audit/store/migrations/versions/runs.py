"""The first tables: contents, runs, parts, spans of findings and retentions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_DIGEST = 64


def upgrade() -> None:
    """Make the tables."""
    _runs()
    _findings()


def _runs() -> None:
    op.create_table(
        "contents",
        sa.Column("digest", sa.String(_DIGEST), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("estate", sa.Text, nullable=False, index=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("hash", sa.String(_DIGEST), nullable=False),
        sa.Column("policies", sa.String(_DIGEST), nullable=False),
        sa.Column("retention", sa.String(_DIGEST), nullable=False),
    )
    op.create_table(
        "parts",
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("snapshot", sa.String(_DIGEST), nullable=False),
        sa.Column("evaluation", sa.String(_DIGEST), nullable=False),
        sa.Column("standing", sa.String(_DIGEST), nullable=False),
        sa.Column("holding", sa.Text, nullable=False),
        sa.Column("exit_code", sa.Integer, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
    )


def _findings() -> None:
    op.create_table(
        "spans",
        sa.Column("estate", sa.Text, primary_key=True),
        sa.Column("key", sa.String(_DIGEST), primary_key=True),
        sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last", sa.Integer),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("resource_type", sa.Text, nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("exempt", sa.Boolean(create_constraint=True, name="exempt_is_boolean"), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "retentions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("runs", sa.Text, nullable=False),
        sa.Column("dropped", sa.BigInteger, nullable=False),
        sa.Column("previous", sa.String(_DIGEST), nullable=False),
        sa.Column("hash", sa.String(_DIGEST), nullable=False),
    )
