"""The tables of a store, as the newest migration leaves them.

`verify-history` can check every value: a run's document with its hash, a part with the content of its run, a content
with its digest, and a span with the findings of the parts.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Dialect, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.types import TypeDecorator

_DIGEST = 64


class AnyText(TypeDecorator[str]):
    """External text. NUL is escaped by a backslash, because PostgreSQL does not support it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  # as it is called
        """Escape a value for the database."""
        return None if value is None else value.replace("\\", "\\\\").replace("\0", "\\0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  # as it is called
        """Return the original value."""
        if value is None or "\\" not in value:
            return value
        return "\\".join(part.replace("\\0", "\0") for part in value.split("\\\\"))


METADATA = MetaData()

#: By SHA-256 in hexadecimal, whatever is kept whole: resources, frames of snapshots, evaluations, findings, bundles.
CONTENTS = Table(
    "contents",
    METADATA,
    Column("digest", String(_DIGEST), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

#: Runs: `document` is the JSON of everything but the hash; `policies` and `retention` are covered by its `content`.
RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("estate", AnyText, nullable=False, index=True),
    Column("document", Text, nullable=False),
    Column("hash", String(_DIGEST), nullable=False),
    Column("policies", String(_DIGEST), nullable=False),
    Column("retention", String(_DIGEST), nullable=False),
)

#: Parts of runs: `standing` is the digest over its findings other than passes; `holding` is the JSON of what they
#: depend on, and until when they are valid.
PARTS = Table(
    "parts",
    METADATA,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, nullable=False),
    Column("snapshot", String(_DIGEST), nullable=False),
    Column("evaluation", String(_DIGEST), nullable=False),
    Column("standing", String(_DIGEST), nullable=False),
    Column("holding", AnyText, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("summary", Text, nullable=False),
)

#: Spans of findings; `key` is derived from their part and content, so that those of one part are adjacent.
SPANS = Table(
    "spans",
    METADATA,
    Column("estate", AnyText, primary_key=True),
    Column("key", String(_DIGEST), primary_key=True),
    Column("first", Integer, primary_key=True, autoincrement=False),
    Column("last", Integer),
    Column("part", AnyText, nullable=False),
    Column("policy", AnyText, nullable=False),
    Column("resource", AnyText, nullable=False),
    Column("resource_type", AnyText, nullable=False),
    Column("severity", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("exempt", Boolean(create_constraint=True, name="exempt_is_boolean"), nullable=False),
    sqlite_with_rowid=False,
)

#: What retention took away, chained as runs are; `runs` is a JSON list of the numbers that lost something.
RETENTIONS = Table(
    "retentions",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("runs", Text, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("previous", String(_DIGEST), nullable=False),
    Column("hash", String(_DIGEST), nullable=False),
)
