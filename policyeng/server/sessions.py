"""Who has signed in with a token in a browser, and how often somebody may try."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from policyeng.server.problems import RefusedError
from policyeng.server.shared import Shared
from policyeng.server.tokens import Scope, Tokens, digest_of

#: Seconds that a session lasts, and how many there are at a time; the oldest goes.
LASTING = 8 * 3600
_MOST = 10_000
#: Refused attempts within so many seconds: from one address, from all of them, and addresses that are remembered.
_WINDOW, _FROM_ONE, _FROM_ALL, _ADDRESSES = 60, 10, 200, 1_000


@dataclass(frozen=True, slots=True)
class _Session:
    digest: bytes
    ends: float


class Sessions:
    """The sessions of browsers, in the memory of all workers: who restarts the server signs everybody out.

    A session is kept under the hash of its key, and asks for its token each time: with that it ends.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Shared[Mapping[bytes, _Session]] = Shared({})

    def begin(self, token: str) -> str:
        """Begin a session of a token that was looked at; gives its key, for a cookie."""
        key = secrets.token_urlsafe(32)
        begun = {digest_of(key): _Session(digest_of(token), self._clock() + LASTING)}
        self._known.replace(lambda known: dict([*known.items()][-(_MOST - 1) :]) | begun)
        return key

    def holder(self, key: str, tokens: Tokens) -> str | None:
        """Give the name of who has the session; None where there is none, or none any more."""
        session = self._known.value.get(digest_of(key))
        if session is None or session.ends <= self._clock():
            return None
        return tokens.name_of(session.digest, Scope.HISTORY)

    def end(self, key: str) -> None:
        """End a session, if it is one."""
        ended = digest_of(key)
        self._known.replace(lambda known: {one: session for one, session in known.items() if one != ended})


class _Refused(NamedTuple):
    """The times of refused attempts: of all, and of those from each address, the latest address last."""

    all: Sequence[float] = ()
    by_address: Mapping[str, Sequence[float]] = {}


class Attempts:
    """Refused attempts to sign in, of late, of all workers.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused = Shared(_Refused())

    def require_patience(self, address: str) -> None:
        """Refuse an attempt after too many.

        Raises:
            RefusedError: with when to try again (429).
        """
        refused = self._refused.value
        for times, most in ((refused.by_address.get(address, ()), _FROM_ONE), (refused.all, _FROM_ALL)):
            late = self._late(times)
            if len(late) >= most:
                wait = str(int(late[0] + _WINDOW - self._clock()) + 1)
                message = "too many attempts to sign in were refused"
                headers = {"Retry-After": wait}
                raise RefusedError(
                    HTTPStatus.TOO_MANY_REQUESTS, message, remedy=f"try again in {wait} seconds", headers=headers
                )

    def refused(self, address: str) -> None:
        """Count an attempt that was refused."""

        def counted(refused: _Refused) -> _Refused:
            others = {one: times for one, times in refused.by_address.items() if one != address}
            from_one = (*self._late(refused.by_address.get(address, ())), self._clock())
            latest = dict([*others.items()][-(_ADDRESSES - 1) :]) | {address: from_one}
            return _Refused((*self._late(refused.all), self._clock()), latest)

        self._refused.replace(counted)

    def _late(self, times: Sequence[float]) -> Sequence[float]:
        return tuple(each for each in times if each > self._clock() - _WINDOW)
