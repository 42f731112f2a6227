"""`policyeng audit notify`: test notification targets, and list and resend pending notifications."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.cli import options
from policyeng.cli.audit.options import StoreUrl, require_expandable_urls
from policyeng.cli.console import print_line
from policyeng.cli.context import plain_format, settings_of
from policyeng.configuration import Settings
from policyeng.configuration.settings import Notifying
from policyeng.errors import UsageError, suggest_nearest
from policyeng.models import JsonObject
from policyeng.report.phrases import count, to_the_second

if TYPE_CHECKING:
    from policyeng.audit.store.outbox import Notice

Names = Annotated[list[str] | None, typer.Argument(metavar="[TARGET]...", help="Configured targets. Default: all.")]
Test = Annotated[bool, typer.Option("--test", help="Send a test message to each target.")]
Retry = Annotated[bool, typer.Option("--retry", help="Resend pending and failed notifications now.")]
Listed = Annotated[bool, typer.Option("--list", help="List pending and failed notifications (the default).")]


def notify(
    targets: Names = None,
    test: Test = False,
    retry: Retry = False,
    list_: Listed = False,
    store: StoreUrl = None,
    config: options.Config = None,
    format_: options.PlainFormat = "text",
) -> int:
    """Test notification targets, or list and resend pending notifications. Exit code 2 if a delivery fails.

    Examples:
      policyeng audit notify --test owners
      policyeng audit notify --list
      policyeng audit notify --retry
    """
    format_ = plain_format(format_)
    if test + retry + list_ > 1:
        raise UsageError("`--test`, `--retry` and `--list` cannot be combined", remedy="choose one of them")
    settings = require_expandable_urls(settings_of({"store": store}, config))
    chosen = _targets(settings, targets or ())
    if test:
        return _test(chosen)
    return _retry(chosen, settings) if retry else _list(chosen, settings, format_)


def _targets(settings: Settings, names: Sequence[str]) -> Sequence[Notifying]:
    """Return the named targets, or all without names.

    Raises:
        UsageError: no target is configured, or a name is unknown.
    """
    known = {target.name: target for target in settings.notify}
    if not known:
        remedy = "add `[[notify]]` to `policyeng.toml`, with `name` and `url`"
        raise UsageError("no notification target is configured", remedy=remedy)
    for name in names:
        if name not in known:
            remedy = f"choose from {', '.join(known)}"
            raise UsageError(f"unknown notification target `{name}`{suggest_nearest(name, known)}", remedy=remedy)
    return [known[name] for name in dict.fromkeys(names)] or [*known.values()]


def _test(targets: Sequence[Notifying]) -> int:
    from policyeng.audit.notifications import render_test_message, require_extra, send

    require_extra()
    faults = {target.name: send(target, *render_test_message(target), os.environ) for target in targets}
    for name, fault in faults.items():
        print_line(f"{name}: not sent: {fault}" if fault else f"{name}: sent", error=bool(fault))
    return 2 if any(faults.values()) else 0


def _retry(targets: Sequence[Notifying], settings: Settings) -> int:
    from policyeng.audit.notifications import lines_of, send_notifications
    from policyeng.audit.store import open_store
    from policyeng.audit.store.outbox import Outbox

    now = datetime.now(UTC)
    with open_store(settings.store) as opened:
        Outbox(opened).retry([target.name for target in targets], now)
        deliveries = send_notifications(opened, settings.notify, os.environ, now)
    for line in lines_of(deliveries):
        print_line(line)
    if not deliveries:
        print_line("no pending notifications")
    return 2 if any(each.fault for each in deliveries) else 0


def _list(targets: Sequence[Notifying], settings: Settings, format_: str) -> int:
    from policyeng.audit.store import open_store
    from policyeng.audit.store.outbox import Outbox

    with open_store(settings.store) as opened:
        unsent = Outbox(opened).unsent()
    names = {target.name for target in targets}
    orphans = {notice.target for notice in unsent} - {target.name for target in settings.notify}
    shown = [notice for notice in unsent if notice.target in names | orphans]
    if format_ == "json":
        print_line(
            orjson.dumps({"notices": [_document(each, orphans) for each in shown]}, option=orjson.OPT_INDENT_2).decode()
        )
        return 0
    for notice in shown:
        title = notice.title.removeprefix("policyeng: ")
        print_line(f"{notice.target}  {to_the_second(notice.created)}  {title}\n  {_print_waiting(notice, orphans)}")
    if not shown:
        print_line("no pending notifications")
    return 0


def _print_waiting(notice: Notice, orphans: set[str]) -> str:
    tried = (
        f"{count(notice.attempts, 'attempt')}, last error: {notice.fault or 'no response'}"
        if notice.attempts
        else "not sent yet"
    )
    if notice.target in orphans:
        return f"{tried}; on hold: the target `{notice.target}` is no longer configured"
    if notice.given_up:
        return f"{tried}; given up; run `policyeng audit notify --retry` to resend it"
    return f"{tried}; next attempt {to_the_second(notice.due)}"


def _document(notice: Notice, orphans: set[str]) -> JsonObject:
    document: JsonObject = orjson.loads(notice.model_dump_json(by_alias=True))
    return {**document, "givenUp": notice.given_up, "configured": notice.target not in orphans}
