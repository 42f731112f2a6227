"""Messages to send, stored next to the runs, and the last run of each estate that targets were notified of.

No run depends on them and no hash covers them. A message is written together with the number of the last run that it
covers: if a process ends before, the next one creates the same messages from the runs. A sender claims a message
first and marks it as sent afterwards. If it ends in between, the message is sent twice, and none is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Insert,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    Update,
    delete,
    distinct,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from policyeng.audit.store.connection import convert_errors, writing
from policyeng.audit.store.store import Store
from policyeng.audit.store.tables import AnyText
from policyeng.models.validated import ValidatedModel

#: Their own, as they are no part of what the chain of runs covers.
OUTBOX = MetaData()

#: Messages: times are RFC 3339 in UTC and compare as text; `together` is the message that one went out with.
NOTICES = Table(
    "notices",
    OUTBOX,
    Column("id", Integer, primary_key=True),
    Column("target", AnyText, nullable=False),
    Column("estate", AnyText, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("body", AnyText, nullable=False),
    Column("created", String(40), nullable=False),
    Column("due", String(40), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("fault", Text, nullable=False),
    Column("sent", String(40)),
    Column("together", Integer),
)

#: By estate, the last run that its targets were notified of.
NOTIFIED_RUNS = Table(
    "told", OUTBOX, Column("estate", AnyText, primary_key=True), Column("run", Integer, nullable=False)
)

#: After so many attempts, which takes three days, a message waits for `audit notify --retry`.
ATTEMPTS = 20
_FIRST, _LONGEST = timedelta(minutes=1), timedelta(hours=6)
#: How long it is kept that a message was sent.
_KEPT = timedelta(days=30)


class Message(ValidatedModel):
    """A message to one target.

    Attributes:
        target: the name of the target.
        estate: the name of the estate.
        title: one line.
        body: plain text.
    """

    target: str
    estate: str
    title: str
    body: str


class Notice(Message):
    """A stored message.

    Attributes:
        created: when it was created.
        due: when to send it.
        attempts: the number of attempts to send it.
        fault: why the last attempt failed; empty before the first.
    """

    id: int
    created: datetime
    due: datetime
    attempts: int
    fault: str

    @property
    def given_up(self) -> bool:
        """Whether it is only sent on request."""
        return self.attempts >= ATTEMPTS


class Outbox:
    """The messages of a store. Every method raises StoreError if the database reports an error."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last_notified(self, estate: str) -> int | None:
        """Return the number of the last run that targets of an estate were notified of, if any."""
        with self._store.reading() as connection:
            number: int | None = connection.scalar(select(NOTIFIED_RUNS.c.run).where(NOTIFIED_RUNS.c.estate == estate))
        return number

    def put(self, messages: Sequence[Message], now: datetime) -> None:
        """Store messages until they are sent."""
        with self._writing() as connection:
            _insert(connection, messages, now)

    def put_run(self, estate: str, notified: int | None, run: int, messages: Sequence[Message], now: datetime) -> bool:
        """Store the messages about the runs of an estate up to one, and the number of that run.

        Args:
            estate: its name.
            notified: the number of the last run of earlier messages, when these were created.
            run: the number of the last run that these messages cover.
            messages: for its targets; none without changes.
            now: the current time.

        Returns:
            Whether they are stored: not if another process stored messages meanwhile.
        """
        table = NOTIFIED_RUNS
        marking: Insert | Update = (
            update(table).where(table.c.estate == estate, table.c.run == notified).values(run=run)
        )
        with self._writing() as connection:
            if notified is None:
                upsert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
                marking = upsert(table).values(estate=estate, run=run).on_conflict_do_nothing()
            if connection.execute(marking.returning(table.c.run)).first() is None:
                return False
            _insert(connection, messages, now)
        return True

    def unsent(self) -> Sequence[Notice]:
        """Return the unsent messages, the oldest first."""
        with self._store.reading() as connection:
            return _read(connection, _unsent())

    def due(self, target: str, now: datetime) -> Sequence[Notice]:
        """Return the due messages of a target, those with the fewest attempts first, then the oldest.

        A message that a service rejects does not delay the others.
        """
        mine = (NOTICES.c.target == target, NOTICES.c.due <= _text(now), NOTICES.c.attempts < ATTEMPTS)
        statement = _unsent().where(*mine).order_by(None).order_by(NOTICES.c.attempts, NOTICES.c.id)
        with self._store.reading() as connection:
            return _read(connection, statement)

    def sent_since(self, target: str, moment: datetime) -> int:
        """Return the number of messages to a target since a moment; combined messages count once."""
        statement = select(func.count(distinct(func.coalesce(NOTICES.c.together, NOTICES.c.id)))).where(
            NOTICES.c.target == target, NOTICES.c.sent > _text(moment)
        )
        with self._store.reading() as connection:
            return connection.scalar(statement) or 0

    def claim(self, notices: Sequence[Notice], now: datetime) -> Sequence[Notice]:
        """Claim messages for sending, and count an attempt. Return them without those that another process claimed.

        Messages that are not marked as sent are due again after a delay, which doubles with every attempt.
        """
        with self._writing() as connection:
            return [notice for notice in notices if _claimed(connection, notice, now)]

    def sent(self, notices: Sequence[Notice], now: datetime) -> None:
        """Mark messages as sent, combined if there are several."""
        with self._writing() as connection:
            connection.execute(_of(notices).values(sent=_text(now), together=notices[0].id, fault=""))
            connection.execute(delete(NOTICES).where(NOTICES.c.sent < _text(now - _KEPT)))

    def failed(self, notices: Sequence[Notice], fault: str, behind: Sequence[Notice] = ()) -> None:
        """Store why claimed messages could not be sent. Those behind them wait as long as the first of them."""
        due = select(NOTICES.c.due).where(NOTICES.c.id == notices[0].id)
        with self._writing() as connection:
            connection.execute(_of(notices).values(fault=fault))
            later = connection.scalar(due)
            connection.execute(_of(behind).where(NOTICES.c.sent.is_(None)).values(due=later))

    def retry(self, targets: Sequence[str], now: datetime) -> None:
        """Make all unsent messages of some targets due now, without earlier attempts."""
        mine = (NOTICES.c.target.in_(targets), NOTICES.c.sent.is_(None))
        with self._writing() as connection:
            connection.execute(update(NOTICES).where(*mine).values(due=_text(now), attempts=0))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with convert_errors(self._store.url), writing(self._store.engine) as connection:
            yield connection


def _insert(connection: Connection, messages: Sequence[Message], now: datetime) -> None:
    if messages:
        moment = _text(now)
        kept = {"created": moment, "due": moment, "attempts": 0, "fault": ""}
        connection.execute(insert(NOTICES), [{**message.model_dump(), **kept} for message in messages])


def _of(notices: Sequence[Notice]) -> Update:
    return update(NOTICES).where(NOTICES.c.id.in_([notice.id for notice in notices]))


def _claimed(connection: Connection, notice: Notice, now: datetime) -> bool:
    later = now + min(_FIRST * 2 ** min(notice.attempts, 16), _LONGEST)
    claiming = (
        update(NOTICES)
        .where(NOTICES.c.id == notice.id, NOTICES.c.attempts == notice.attempts, NOTICES.c.sent.is_(None))
        .values(attempts=notice.attempts + 1, due=_text(later))
    )
    return connection.execute(claiming.returning(NOTICES.c.id)).first() is not None


def _unsent() -> Select[tuple[object, ...]]:
    columns = [NOTICES.c[name] for name in Notice.model_fields]
    return select(*columns).where(NOTICES.c.sent.is_(None)).order_by(NOTICES.c.id)


def _read(connection: Connection, statement: Select[tuple[object, ...]]) -> Sequence[Notice]:
    return [_build_notice(**row._mapping) for row in connection.execute(statement)]


def _build_notice(*, created: str, due: str, **fields: object) -> Notice:
    values: dict[str, Any] = {**fields, "created": datetime.fromisoformat(created), "due": datetime.fromisoformat(due)}
    return Notice.model_construct(**values)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
