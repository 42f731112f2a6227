"""Who has signed in with a token in a browser, and how often somebody may try."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from policyeng.server.problems import RefusedError
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
    """The sessions of browsers, in memory: who restarts the server signs everybody out.

    A session is kept under the hash of its key, and asks for its token each time: with that it ends.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, _Session] = OrderedDict()

    def begin(self, token: str) -> str:
        """Begin a session of a token that was looked at; gives its key, for a cookie."""
        key = secrets.token_urlsafe(32)
        self._known[digest_of(key)] = _Session(digest_of(token), self._clock() + LASTING)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return key

    def holder(self, key: str, tokens: Tokens) -> str | None:
        """Give the name of who has the session; None where there is none, or none any more."""
        session = self._known.get(digest_of(key))
        if session is None or session.ends <= self._clock():
            return None
        return tokens.name_of(session.digest, Scope.HISTORY)

    def end(self, key: str) -> None:
        """End a session, if it is one."""
        self._known.pop(digest_of(key), None)


class Attempts:
    """Refused attempts to sign in, of late.

    Args:
        clock: in seconds, and never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: deque[float] = deque()
        self._by_address: OrderedDict[str, deque[float]] = OrderedDict()

    def require_patience(self, address: str) -> None:
        """Refuse an attempt after too many.

        Raises:
            RefusedError: with when to try again (429).
        """
        for times, most in ((self._by_address.get(address, deque()), _FROM_ONE), (self._all, _FROM_ALL)):
            self._forget(times)
            if len(times) >= most:
                wait = str(int(times[0] + _WINDOW - self._clock()) + 1)
                message = "too many attempts to sign in were refused"
                headers = {"Retry-After": wait}
                raise RefusedError(
                    HTTPStatus.TOO_MANY_REQUESTS, message, remedy=f"try again in {wait} seconds", headers=headers
                )

    def refused(self, address: str) -> None:
        """Count an attempt that was refused."""
        times = self._by_address.setdefault(address, deque())
        self._by_address.move_to_end(address)
        while len(self._by_address) > _ADDRESSES:
            self._by_address.popitem(last=False)
        times.append(self._clock())
        self._all.append(self._clock())

    def _forget(self, times: deque[float]) -> None:
        while times and times[0] <= self._clock() - _WINDOW:
            times.popleft()
