"""Send what waits in the outbox, within the rate of each target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from policyeng.audit.notifying.sending import send
from policyeng.audit.notifying.wording import together
from policyeng.audit.store.outbox import Notice, Outbox
from policyeng.configuration.notifying import Notifying

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the messages to one target.

    Attributes:
        sent: how many messages went out.
        waiting: how many wait: for room within the rate, or to be tried again.
        fault: why one did not go out; empty where all did.
    """

    target: str
    sent: int = 0
    waiting: int = 0
    fault: str = ""


def deliver(outbox: Outbox, target: Notifying, environ: Mapping[str, str], now: datetime) -> Delivery:
    """Send a target what is due; where that is more than its rate takes, the rest goes out in one message.

    After one that does not arrive no other is tried, and all of them wait until that one is due again.

    Raises:
        StoreError: the store refuses something.
    """
    due = outbox.due(target.name, now)
    room = target.per_hour - outbox.sent_since(target.name, now - _HOUR) if due else 0
    sent, left = 0, len(due)
    for batch in _batches(due, room):
        claimed = outbox.claim(batch, now)
        left -= len(batch)
        if not claimed:  # another process sends them
            continue
        if fault := send(target, *together(claimed), environ):
            outbox.failed(claimed, fault, due[len(due) - left :])
            return Delivery(target.name, sent, len(claimed) + left, fault)
        outbox.sent(claimed, now)
        sent += 1
    return Delivery(target.name, sent, left)


def _batches(due: Sequence[Notice], room: int) -> Iterator[Sequence[Notice]]:
    """One message each, but for what goes beyond the room, which is the last; nothing without room."""
    if room <= 0:
        return
    alone = len(due) if len(due) <= room else room - 1
    yield from ([notice] for notice in due[:alone])
    if due[alone:]:
        yield due[alone:]
