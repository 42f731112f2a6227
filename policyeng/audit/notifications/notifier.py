"""Tell the targets what is new of the estates of a store, and send what waits from before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from policyeng.audit.notifications.changes import news_of
from policyeng.audit.notifications.messages import failure, messages, together
from policyeng.audit.notifications.sender import require_extra, send
from policyeng.audit.store.outbox import Notice, Outbox
from policyeng.audit.store.store import Store
from policyeng.configuration.notification_targets import Notifying
from policyeng.report.phrases import count

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


def tell(store: Store, targets: Sequence[Notifying], environ: Mapping[str, str], now: datetime) -> Sequence[Delivery]:
    """Make the messages on runs that nobody was told of, and send all that is due.

    Args:
        store: with the runs.
        targets: who is told; without any nothing is noted either.
        environ: what URLs take from the environment.
        now: the present.

    Returns:
        What became of it, by target; those with nothing to send are left out.

    Raises:
        StoreError: the store refuses something.
        UsageError: apprise is not installed.
    """
    if not targets:
        return []
    require_extra()
    outbox = Outbox(store)
    for estate in store.estates():
        told = outbox.told(estate)
        owned = told is not None or any(target.owners for target in targets)
        news = news_of(store, estate, told, owned=owned)
        if news is not None:
            new = [message for target in targets for message in messages(news, target)]
            outbox.tell(estate, told, news.run.number, new, now)
    return send_due(store, targets, environ, now)


def send_due(
    store: Store, targets: Iterable[Notifying], environ: Mapping[str, str], now: datetime
) -> Sequence[Delivery]:
    """Send all that is due; as `tell`."""
    outbox = Outbox(store)
    deliveries = [deliver(outbox, target, environ, now) for target in targets]
    return [each for each in deliveries if each.sent or each.waiting]


def tell_failure(store: Store, targets: Sequence[Notifying], estate: str, reason: str, now: datetime) -> None:
    """Keep for the targets of an estate that it could not be audited; `send_due` sends it.

    Targets of single owners are told only where no other is.

    Raises:
        StoreError: the store refuses it.
    """
    concerned = [target for target in targets if not target.estates or estate in target.estates]
    general = [target for target in concerned if not target.owners]
    Outbox(store).put([failure(target, estate, reason) for target in general or concerned], now)


def lines_of(deliveries: Iterable[Delivery]) -> list[str]:
    """What became of messages, one line for each target; names are the user's own."""
    return [_line(delivery) for delivery in deliveries]


def _line(delivery: Delivery) -> str:
    parts = [f"{count(delivery.sent, 'message')} sent"] if delivery.sent else []
    if delivery.fault:
        parts.append(f"{delivery.waiting} not sent and tried again later ({delivery.fault})")
    elif delivery.waiting:
        parts.append(f"{delivery.waiting} held back by its rate")
    return f"notify {delivery.target}: {', '.join(parts)}"
