"""Limit how long connections to PostgreSQL wait. Only stores on PostgreSQL import this: it needs psycopg."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import URL, Engine, event

from policyeng.errors import UsageError

_T = TypeVar("_T")

#: Seconds for a connection, for a statement and for a lock.
CONNECT, STATEMENT, LOCK = 10, 120, 60
#: Additional seconds before the client gives up, so that the server can report first that a statement took too long.
GRACE = 5.0
#: The parameter of a URL that replaces `STATEMENT`; libpq has none.
_PARAMETER = "statement_timeout"
_REMEDY = f"write a number of seconds from 1, as in `?{_PARAMETER}=600`"


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time; every operation waits here."""

    limit: float = STATEMENT + GRACE

    def wait(self, gen: PQGen[_T], *arguments: object, **options: object) -> _T:
        """Return the result of a generator of psycopg.

        Raises:
            psycopg.OperationalError: the server did not answer in time.
        """
        return super().wait(self._limited(gen), *arguments, **options)  # type: ignore[arg-type]  # as psycopg calls it

    def _limited(self, gen: PQGen[_T]) -> PQGen[_T]:
        until = time.monotonic() + self.limit
        try:
            waiting_for = next(gen)
            while True:
                ready = yield waiting_for
                if not ready and time.monotonic() > until:
                    self.pgconn.finish()  # or a rollback would wait as long again
                    raise psycopg.OperationalError(f"the server did not answer within {self.limit:g} seconds")
                waiting_for = gen.send(ready)
        except StopIteration as ended:
            result: _T = ended.value
            return result


def statement_seconds(address: URL) -> tuple[URL, int]:
    """Return the address without the parameter for the timeout of statements, and that timeout in seconds.

    Raises:
        UsageError: the parameter is not a valid number.
    """
    given = address.query.get(_PARAMETER, str(STATEMENT))
    if not (isinstance(given, str) and given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= 1_000_000):
        place = address.render_as_string(hide_password=True)
        raise UsageError(f"`{_PARAMETER}` does not fit: `{given}`", place=(place,), remedy=_REMEDY)
    return address.difference_update_query([_PARAMETER]), int(given)


def limit(engine: Engine, seconds: int) -> None:
    """Limit the statements of all connections of an engine to a number of seconds."""

    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, arguments: Sequence[str], parameters: Mapping[str, str]
    ) -> LimitedConnection:
        connection = LimitedConnection.connect(*arguments, **{"connect_timeout": CONNECT, **parameters})  # type: ignore[arg-type]  # libpq takes them as text
        connection.limit = seconds + GRACE
        connection.autocommit = True
        connection.execute(f"SET statement_timeout = {seconds * 1000}; SET lock_timeout = {LOCK * 1000}")
        connection.autocommit = False
        return connection
