"""Tell the targets what is new of the estates of a store, and send what waits from before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from policyeng.audit.notifying.delivering import Delivery, deliver
from policyeng.audit.notifying.news import news_of
from policyeng.audit.notifying.sending import require_extra
from policyeng.audit.notifying.wording import failure, messages
from policyeng.audit.store.kept import Store
from policyeng.audit.store.outbox import Outbox
from policyeng.configuration.notifying import Notifying
from policyeng.report.wording import count


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
