"""Notifications after a run; failures are reported on standard error and never fail the command."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from policyeng.cli.console import print_line
from policyeng.configuration import Settings
from policyeng.errors import PolicyengError

if TYPE_CHECKING:
    from policyeng.audit.store import Store


def notify_about_runs(store: Store, settings: Settings) -> None:
    """Notify the configured targets of new runs, and resend earlier notifications that failed."""
    if not settings.notify:
        return
    from policyeng.audit.notifications.notifier import lines_of, send_notifications

    try:
        deliveries = send_notifications(store, settings.notify, os.environ, datetime.now(UTC))
    except PolicyengError as error:  # the runs are stored, and the notification is repeated next time
        print_line(f"policyeng: not notified: {error}", error=True)
        return
    for line in lines_of(deliveries):
        print_line(f"policyeng: {line}", error=True)
