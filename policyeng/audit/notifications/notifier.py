"""Notifications of targets about the changes of the estates of a store, and delivery of waiting messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from policyeng.audit.notifications.changes import find_news
from policyeng.audit.notifications.messages import combine_messages, failure, messages
from policyeng.audit.notifications.sender import require_extra, send
from policyeng.audit.store.outbox import Notice, Outbox
from policyeng.audit.store.store import Store
from policyeng.configuration.notification_targets import Notifying
from policyeng.report.phrases import count

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending messages to one target.

    Attributes:
        sent: the number of sent messages.
        waiting: the number of messages that wait for the rate limit or for another attempt.
        fault: why a message could not be sent; empty without a failure.
    """

    target: str
    sent: int = 0
    waiting: int = 0
    fault: str = ""


def deliver(outbox: Outbox, target: Notifying, environ: Mapping[str, str], now: datetime) -> Delivery:
    """Send the due messages of a target. Those beyond its rate are combined into one message.

    After a failure, no other message is sent, and all of them wait until the failed one is due again.

    Raises:
        StoreError: the store cannot be used.
    """
    due = outbox.due(target.name, now)
    room = target.per_hour - outbox.sent_since(target.name, now - _HOUR) if due else 0
    sent, left = 0, len(due)
    for batch in _batches(due, room):
        claimed = outbox.claim(batch, now)
        left -= len(batch)
        if not claimed:  # another process sends them
            continue
        if fault := send(target, *combine_messages(claimed), environ):
            outbox.failed(claimed, fault, due[len(due) - left :])
            return Delivery(target.name, sent, len(claimed) + left, fault)
        outbox.sent(claimed, now)
        sent += 1
    return Delivery(target.name, sent, left)


def _batches(due: Sequence[Notice], room: int) -> Iterator[Sequence[Notice]]:
    """Yield batches of one message. The last batch combines the messages beyond the limit; no batches without room."""
    if room <= 0:
        return
    alone = len(due) if len(due) <= room else room - 1
    yield from ([notice] for notice in due[:alone])
    if due[alone:]:
        yield due[alone:]


def send_notifications(
    store: Store, targets: Sequence[Notifying], environ: Mapping[str, str], now: datetime
) -> Sequence[Delivery]:
    """Create the messages about new runs, and send all due messages.

    Args:
        store: the store with the runs.
        targets: the recipients; without any, nothing is stored.
        environ: the variables for URLs.
        now: the current time.

    Returns:
        The results for the targets that have messages.

    Raises:
        StoreError: the store cannot be used.
        UsageError: apprise is not installed.
    """
    if not targets:
        return []
    require_extra()
    outbox = Outbox(store)
    for estate in store.estates():
        told = outbox.told(estate)
        owned = told is not None or any(target.owners for target in targets)
        news = find_news(store, estate, told, owned=owned)
        if news is not None:
            new = [message for target in targets for message in messages(news, target)]
            outbox.tell(estate, told, news.run.number, new, now)
    return send_due(store, targets, environ, now)


def send_due(
    store: Store, targets: Iterable[Notifying], environ: Mapping[str, str], now: datetime
) -> Sequence[Delivery]:
    """Send all due messages, with the results of `tell`."""
    outbox = Outbox(store)
    deliveries = [deliver(outbox, target, environ, now) for target in targets]
    return [each for each in deliveries if each.sent or each.waiting]


def store_failure_messages(store: Store, targets: Sequence[Notifying], estate: str, reason: str, now: datetime) -> None:
    """Store messages about a failed audit of an estate; `send_due` sends them.

    Targets with owners are notified only if there are no others.

    Raises:
        StoreError: the store cannot be used.
    """
    concerned = [target for target in targets if not target.estates or estate in target.estates]
    general = [target for target in concerned if not target.owners]
    Outbox(store).put([failure(target, estate, reason) for target in general or concerned], now)


def lines_of(deliveries: Iterable[Delivery]) -> list[str]:
    """Return the results of sending messages, one line for each target."""
    return [_line(delivery) for delivery in deliveries]


def _line(delivery: Delivery) -> str:
    parts = [f"{count(delivery.sent, 'message')} sent"] if delivery.sent else []
    if delivery.fault:
        parts.append(f"{delivery.waiting} not sent and tried again later ({delivery.fault})")
    elif delivery.waiting:
        parts.append(f"{delivery.waiting} held back by its rate")
    return f"notify {delivery.target}: {', '.join(parts)}"
