"""Tell of the runs that a command made; what goes wrong with that is said, and changes nothing else."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from policyeng.cli.console import say
from policyeng.configuration import Settings
from policyeng.errors import PolicyengError

if TYPE_CHECKING:
    from policyeng.audit.store import Store


def tell_runs(store: Store, settings: Settings) -> None:
    """Tell the configured targets what nobody was told of yet, and send what did not arrive before."""
    if not settings.notify:
        return
    from policyeng.audit.notifications.notifier import lines_of, tell

    try:
        told = tell(store, settings.notify, os.environ, datetime.now(UTC))
    except PolicyengError as error:  # the runs are kept, and told the next time
        say(f"policyeng: not notified: {error}", error=True)
        return
    for line in lines_of(told):
        say(f"policyeng: {line}", error=True)
