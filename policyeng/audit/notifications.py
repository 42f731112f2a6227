"""Notifications of owners and channels about what changed between two runs, delivered through apprise."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from policyeng.audit.records import AuditRun, FindingSpan, History
from policyeng.audit.store.outbox import Message, Notice, Outbox
from policyeng.audit.store.store import Store
from policyeng.configuration.settings import Notifying
from policyeng.errors import UsageError
from policyeng.models import Outcome, Problem, Severity, lowered
from policyeng.report.context import Owners, owners_of
from policyeng.report.escaping import visible
from policyeng.report.phrases import count, shorten_id, to_the_second

if TYPE_CHECKING:
    from apprise import Apprise

_VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
#: What separates the parts of a URL that may be secret; shorter parts reveal nothing.
_SEPARATORS = re.compile(r"[:/?&=@#,;+]+")
_SHORTEST = 4
#: Seconds that a service has to take a message.
_PATIENCE = 30
#: One message at a time: lines that apprise logs do not name their thread, and may contain parts of another URL.
_LOGGING = Lock()
#: The longest reason that is kept.
_LONGEST = 300


def require_extra() -> None:
    """Check whether apprise is installed.

    Raises:
        UsageError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("apprise") is None:
        raise UsageError("notifications need `apprise`, which is not installed", remedy="install `policyeng[audit]`")


def require_expandable(target: Notifying) -> None:
    """Reject `${NAME}` in a URL of a configuration in a parent directory, which could read the environment.

    Raises:
        UsageError: the URL has a variable, and the file was found in a parent directory.
    """
    found = _VARIABLE.search(target.url.get_secret_value())
    if found and target.inherited_from:
        message = f"`{found[0]}` is not expanded, because the configuration was found in a parent directory"
        remedy = f"name it with `--config {target.inherited_from}`, or run policyeng in its directory"
        raise UsageError(message, place=(target.inherited_from, f"notify {target.name}"), remedy=remedy)


def address_of(target: Notifying, environ: Mapping[str, str]) -> str:
    """Return the URL of a target with its variables replaced, percent-encoded within a URL.

    Raises:
        UsageError: a variable is not set, or the configuration was found in a parent directory.
    """
    require_expandable(target)
    stated = target.url.get_secret_value()

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not environ.get(name):
            place, remedy = (f"notify {target.name}",), f"set `{name}`, or write the URL without it"
            raise UsageError(f"the environment has no variable `{name}`", place=place, remedy=remedy)
        return environ[name] if found[0] == stated else quote(environ[name], safe="")

    return _VARIABLE.sub(value, stated)


def send(target: Notifying, title: str, body: str, environ: Mapping[str, str]) -> str:
    """Send a message. Return why it failed, on one line and without secrets, or an empty text."""
    from apprise import NotifyFormat

    try:
        address = address_of(target, environ)
    except UsageError as error:
        return error.message
    with _LOGGING, _caught() as lines:
        try:
            services = _services(address)
            if not len(services):
                return _hide_url(f"apprise does not take the URL ({_last(lines)})", address)
            sent = services.notify(body=body, title=title, body_format=NotifyFormat.TEXT, timeout=2 * _PATIENCE)
        except Exception as error:  # what a service raises is of its own kind, and one that fails must not end a run
            return _hide_url(f"{type(error).__name__}: {error}", address)
    return "" if sent else _hide_url(_last(lines), address)


def _services(address: str) -> Apprise:
    """Return the services of a URL; they read and write no files, and do not interpret emoji names or escapes."""
    from apprise import Apprise, AppriseAsset

    asset = AppriseAsset(
        app_id="policyeng",
        app_desc="policyeng audits",
        async_mode=False,
        interpret_emojis=False,
        interpret_escapes=False,
        allow_templates=False,
        http_redirects=False,
        storage_mode="memory",
        service_timeout=_PATIENCE,
    )
    services = Apprise(asset=asset)
    services.add(address)
    return services


class _caught(logging.Handler):  # noqa: N801  # it is used as a context manager
    """The lines that apprise logs, on this and other threads; they are not printed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def __enter__(self) -> list[str]:
        logger = logging.getLogger("apprise")
        self._propagates, logger.propagate = logger.propagate, False
        logger.addHandler(self)
        return self._lines

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("apprise")
        logger.removeHandler(self)
        logger.propagate = self._propagates

    def emit(self, line: logging.LogRecord) -> None:
        """Store a line."""
        self._lines.append(line.getMessage())


def _last(lines: list[str]) -> str:
    return lines[-1] if lines else "no details"


def _hide_url(text: str, address: str) -> str:
    """Return a reason on one line without any part of the URL."""
    for secret in sorted(_secrets(address), key=len, reverse=True):
        text = text.replace(secret, "***")
    shown = visible(" ".join(text.split())).rstrip(".")
    return f"{shown[:_LONGEST]}…" if len(shown) > _LONGEST else shown


def _secrets(address: str) -> Iterator[str]:
    _, _, rest = address.partition("://")
    for part in {rest, *_SEPARATORS.split(rest)}:
        yield from (each for each in (part, unquote(part), quote(part)) if len(each) >= _SHORTEST)


_IN_PART = "something in it could not be read or evaluated"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A new or fixed finding.

    Attributes:
        span: the current or last span of the finding.
        fixed: whether the policy passes now, or the resource is gone.
        owner: of the resource; empty without one.
    """

    span: FindingSpan
    fixed: bool
    owner: str = ""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of an estate since its last notification.

    Attributes:
        run: the newest run.
        since: the run of the last notification; None without one, when all findings are new.
        changes: the most severe first.
        exempted: the number of findings that are newly exempt.
        problems: new ones of reading and evaluating.
    """

    run: AuditRun
    since: AuditRun | None
    changes: Sequence[FindingChange]
    exempted: int = 0
    problems: Sequence[Problem] = ()


def find_news(history: History, estate: str, notified: int | None, *, owned: bool = True) -> RunChanges | None:
    """Return the changes of an estate since its last notification; None if that covers the newest run.

    A part that the newest run could not read is skipped: its findings are not fixed. When it is read again, it is
    compared with the last run that could read it.

    Args:
        history: the runs.
        estate: its name; one that has a run.
        notified: the number of the last run that targets were notified of; None without one.
        owned: whether to read snapshots for the owners.

    Raises:
        StoreError: the store is broken.
    """
    newest = history.runs(estate, last=1)[-1]
    if notified is not None and notified >= newest.number:
        return None
    since = None if notified is None else history.run(notified)
    before = _Before(history, since)
    unread, faulty = _unread(history, newest), _find_faulty_parts(history, newest)
    changes: list[FindingChange] = []
    exempted = 0
    spans = history.spans(estate, since=before.earliest if since else newest.number)
    for part, members in groupby(spans, attrgetter("part")):
        if part in unread:
            continue
        moved, taken = _find_moved_findings(members, before.run_of(part), newest.number)
        exempted += taken if since else 0
        changes += _owned(moved, history, newest, since, part) if owned else moved
    changes.sort(key=_sort_by_severity)
    known = () if since is None else since.problems
    problems = [each for each in newest.problems if each.level == "error" and each not in known]
    if since is not None:
        others = sorted(faulty - _find_faulty_parts(history, since))
        problems += [Problem(level="error", message=_IN_PART, place=part) for part in others]
    return RunChanges(newest, since, changes, exempted, problems)


class _Before:
    """By part, the run to compare with: that of the last notification, or the last that could read the part."""

    def __init__(self, history: History, since: AuditRun | None) -> None:
        self._last_notified = 0 if since is None else since.number
        self._others: dict[str, int] = {}
        missing = set() if since is None else _unread(history, since)
        if missing and since is not None:
            self._look_back(history, since, missing)
        self.earliest = min((number for number in self._others.values() if number), default=self._last_notified)

    def _look_back(self, history: History, since: AuditRun, missing: set[str]) -> None:
        for run in reversed(history.runs(since.estate)):
            if run.number < since.number and missing:
                found = {part.name for part in history.parts(run) if part.evaluation} & missing
                self._others |= dict.fromkeys(found, run.number)
                missing -= found
        self._others |= dict.fromkeys(missing, 0)

    def run_of(self, part: str) -> int:
        return self._others.get(part, self._last_notified)


def _unread(history: History, run: AuditRun) -> set[str]:
    return {part.name for part in history.parts(run) if not part.evaluation}


def _find_faulty_parts(history: History, run: AuditRun) -> set[str]:
    """Return the parts with problems that no finding reports."""
    parts = history.parts(run)
    return {part.name for part in parts if part.evaluation and part.exit_code > 1 and not part.summary.error}


def _find_moved_findings(spans: Iterable[FindingSpan], before: int, now: int) -> tuple[list[FindingChange], int]:
    """Return the new and the gone findings of a part, and the number of newly exempt ones."""
    changes: list[FindingChange] = []
    exempted = 0
    for _, members in groupby(spans, attrgetter("policy", "resource")):
        same = list(members)
        earlier, later = _find_period(same, before), _find_period(same, now)
        counted = earlier is not None and not earlier.exempt
        if later is None:
            changes += [FindingChange(earlier, fixed=True)] if earlier is not None and counted else []
        elif later.exempt:
            exempted += counted
        elif earlier is None or not counted or earlier.outcome is not later.outcome:
            changes.append(FindingChange(later, fixed=False))
    return changes, exempted


def _find_period(spans: Iterable[FindingSpan], run: int) -> FindingSpan | None:
    """Return the period of a run."""
    return next((span for span in spans if span.first <= run and (span.until is None or run < span.until)), None)


def _owned(
    changes: Sequence[FindingChange], history: History, newest: AuditRun, since: AuditRun | None, part: str
) -> Iterator[FindingChange]:
    """Return the changes of a part with their owners; a gone finding keeps its owner."""
    if not changes:
        return
    now = _owners(history, newest, part)
    then = now
    if since is not None and any(change.fixed for change in changes):
        then = {**now, **_owners(history, since, part)}
    for change in changes:
        owners = Owners(then) if change.fixed else Owners(now)
        yield FindingChange(change.span, change.fixed, owners.get(change.span.resource, ""))


def _owners(history: History, run: AuditRun, name: str) -> Mapping[str, str]:
    """Return the owners in a part of a run; none if the part is missing or retention removed it."""
    part = history.part(run, name)
    try:
        return {} if part is None else dict(owners_of(history.snapshot(part)))
    except UsageError:
        return {}


def _sort_by_severity(change: FindingChange) -> tuple[object, ...]:
    span = change.span
    return -span.severity.rank, span.outcome is not Outcome.FAIL, span.policy, span.part, span.resource


#: No name that Azure takes is longer than its id, and no id is of use that fills a screen.
LONGEST = 200
_OBEYED = re.compile(r"[*`~|<>\[\]&\\#!$]|(?<![^\W_])_|_(?![^\W_])|:(?=//|[a-z][\w+-]*:)|(?<=\bwww)\.", re.IGNORECASE)
_MENTION = re.compile("@(?!\u200b)")


def plain(text: str, longest: int = LONGEST) -> str:
    """Return text on one line without markup, cut if it is long."""
    shown = text if len(text) <= longest else f"{text[:longest]}…"
    written = visible(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", shown))
    return _MENTION.sub("@\u200b", written)


#: Characters that the lists of a message may take: Discord takes 2,000 in all, and others take more.
_NEW, _FIXED, _OTHERS = 950, 350, 300
_TITLE = 150
_VERBS = {Outcome.FAIL: "fails on", Outcome.UNKNOWN: "is unknown on", Outcome.ERROR: "has an error on"}


def messages(news: RunChanges, target: Notifying) -> Iterator[Message]:
    """Yield the messages to a target about an estate: one for each owner, or one summary the first time."""
    if target.estates and news.run.estate not in target.estates:
        return
    changes = [change for change in news.changes if _describe_scope(change, target)]
    if news.since is None:
        title = f"{count(len(changes), 'finding')} to begin with"
        yield _message(target, news.run.estate, title, _summary(news, changes, target))
        return
    for owner in dict.fromkeys(change.owner for change in changes):
        yield _group_by_owner(news, target, owner, [change for change in changes if change.owner == owner])
    if news.problems and not target.owners:
        title = f"{count(len(news.problems), 'problem')} with what is audited"
        lines = (plain(f"{each.place}: {each.message}" if each.place else each.message) for each in news.problems)
        body = f"{_since(news)}\n\n{_list_lines(lines, len(news.problems), _NEW, 'runs')}"
        yield _message(target, news.run.estate, title, body)


def failure(target: Notifying, estate: str, reason: str) -> Message:
    """Return the message to a target about a failed audit."""
    body = f"The estate {plain(estate)} could not be audited: {plain(reason, 600)}\n\nThe runs before are kept."
    return _message(target, estate, "could not be audited", body)


def combine_messages(combined: Sequence[Message]) -> tuple[str, str]:
    """Return one title and body for messages to one target; those of a single message are unchanged."""
    if len(combined) == 1:
        return combined[0].title, combined[0].body
    lines = (message.title.removeprefix("policyeng: ") for message in combined)
    body = (
        "There are more notifications than this target accepts in an hour.\n\n"
        f"{_list_lines(lines, len(combined), _NEW + _FIXED, 'report')}"
    )
    return f"policyeng: {len(combined)} notifications in one", body


def render_test_message(target: Notifying) -> tuple[str, str]:
    """Return the title and body of a test message."""
    return "policyeng: test", f"This is a test of the target {plain(target.name)}. Nothing is wrong."


def _describe_scope(change: FindingChange, target: Notifying) -> bool:
    severe = change.span.severity.rank >= target.severity.rank
    return severe and (not target.owners or lowered(change.owner) in map(lowered, target.owners))


def _message(target: Notifying, estate: str, title: str, body: str) -> Message:
    whole = f"policyeng: {plain(estate)}: {title}"
    return Message(target=target.name, estate=estate, title=whole[:_TITLE], body=body)


def _group_by_owner(news: RunChanges, target: Notifying, owner: str, changes: Sequence[FindingChange]) -> Message:
    new = [change for change in changes if not change.fixed]
    fixed = [change for change in changes if change.fixed]
    title = f"{len(new)} new, {len(fixed)} fixed for {plain(owner, 60) or 'no owner'}"
    parts = [_since(news), *_section("new", new, _NEW), *_section("fixed or gone", fixed, _FIXED)]
    if news.exempted and not target.owners:
        parts.append(f"{count(news.exempted, 'finding')} of all owners exempt since.")
    return _message(target, news.run.estate, title, "\n\n".join(parts))


def _since(news: RunChanges) -> str:
    run, since = news.run, news.since
    before = f", since run {since.number}" if since else ""
    return f"Run {run.number} of {plain(run.estate)}, as of {to_the_second(run.as_of)}{before}:"


def _section(what: str, changes: Sequence[FindingChange], room: int) -> Iterator[str]:
    if changes:
        yield f"{len(changes)} {what}: {_severities(changes)}."
        yield _list_lines(map(_line, changes), len(changes), room, "report")


def _severities(changes: Iterable[FindingChange]) -> str:
    counted = Counter(change.span.severity for change in changes)
    return ", ".join(f"{counted[severity]} {severity}" for severity in reversed(Severity) if counted[severity])


def _line(change: FindingChange) -> str:
    span = change.span
    verb = "no longer fails, or is gone:" if change.fixed else _VERBS[span.outcome]
    where = f"{plain(shorten_id(span.resource), 80)} ({plain(span.part, 80)})"
    return f"{span.severity} {plain(span.policy, 60)} {verb} {where}"


def _list_lines(lines: Iterable[str], total: int, room: int, command: str) -> str:
    """Return a list of lines that fits the room, with the number of the others."""
    taken: list[str] = []
    for line in lines:
        room -= len(line) + 3
        if room < 0 and taken:
            break
        taken.append(f"- {line}")
    left = total - len(taken)
    more = [f"- and {left} more; `policyeng audit {command}`"] if left else []
    return "\n".join([*taken, *more])


def _summary(news: RunChanges, changes: Sequence[FindingChange], target: Notifying) -> str:
    """Return a summary of the first audit, which can have thousands of findings."""
    run = news.run
    whose = f" for {plain(', '.join(target.owners))}" if target.owners else ""
    severities = f": {_severities(changes)}" if changes else ""
    standing = f"{count(len(changes), 'finding')}{whose} from severity {target.severity} on{severities}."
    counts = Counter((change.span.severity, change.span.policy) for change in changes)
    worst = sorted(counts.items(), key=lambda each: (-each[0][0].rank, -each[1], each[0][1]))
    lines = (f"{number} x {plain(policy, 60)} ({severity})" for (severity, policy), number in worst)
    evaluated = f"{count(run.parts, 'part')} evaluated, {run.summary.strict_compliance:g} % compliant. {standing}"
    parts = [_since(news), evaluated, *([_list_lines(lines, len(worst), _OTHERS, "report")] if worst else [])]
    return "\n\n".join([*parts, "From now on you are notified of new and fixed findings."])


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
        notified = outbox.last_notified(estate)
        owned = notified is not None or any(target.owners for target in targets)
        news = find_news(store, estate, notified, owned=owned)
        if news is not None:
            new = [message for target in targets for message in messages(news, target)]
            outbox.put_run(estate, notified, news.run.number, new, now)
    return send_due(store, targets, environ, now)


def send_due(
    store: Store, targets: Iterable[Notifying], environ: Mapping[str, str], now: datetime
) -> Sequence[Delivery]:
    """Send all due messages, and return the deliveries."""
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
    return [_describe_delivery(delivery) for delivery in deliveries]


def _describe_delivery(delivery: Delivery) -> str:
    parts = [f"{count(delivery.sent, 'message')} sent"] if delivery.sent else []
    if delivery.fault:
        parts.append(f"{delivery.waiting} not sent and tried again later ({delivery.fault})")
    elif delivery.waiting:
        parts.append(f"{delivery.waiting} held back by its rate")
    return f"notify {delivery.target}: {', '.join(parts)}"
