"""The messages: plain text, the most severe first, short enough for chats, and with escaped names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from policyeng.audit.notifications.changes import FindingChange, RunChanges
from policyeng.audit.store.outbox import Message
from policyeng.configuration.notification_targets import Notifying
from policyeng.models import Outcome, Severity, lowered
from policyeng.report.escaping import visible
from policyeng.report.phrases import count, shorten_id, to_the_second

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
_SAYS = {Outcome.FAIL: "fails on", Outcome.UNKNOWN: "cannot be decided on", Outcome.ERROR: "cannot be judged on"}


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
        yield _owned(news, target, owner, [change for change in changes if change.owner == owner])
    if news.problems and not target.owners:
        title = f"{count(len(news.problems), 'problem')} with what is audited"
        lines = (plain(f"{each.place}: {each.message}" if each.place else each.message) for each in news.problems)
        body = f"{_since(news)}\n\n{_list_lines(lines, len(news.problems), _NEW, 'runs')}"
        yield _message(target, news.run.estate, title, body)


def failure(target: Notifying, estate: str, reason: str) -> Message:
    """Return the message to a target about a failed audit."""
    body = f"The estate {plain(estate)} could not be audited: {plain(reason, 600)}\n\nThe runs before are kept."
    return _message(target, estate, "could not be audited", body)


def combine_messages(told: Sequence[Message]) -> tuple[str, str]:
    """Return one title and body for messages to one target; those of a single message are unchanged."""
    if len(told) == 1:
        return told[0].title, told[0].body
    lines = (message.title.removeprefix("policyeng: ") for message in told)
    body = (
        f"More came up than this target takes in an hour.\n\n{_list_lines(lines, len(told), _NEW + _FIXED, 'report')}"
    )
    return f"policyeng: {len(told)} notifications in one", body


def render_test_message(target: Notifying) -> tuple[str, str]:
    """Return the title and body of a test message."""
    return "policyeng: test", f"This is a test of the target {plain(target.name)}. Nothing is wrong."


def _describe_scope(change: FindingChange, target: Notifying) -> bool:
    severe = change.span.severity.rank >= target.severity.rank
    return severe and (not target.owners or lowered(change.owner) in map(lowered, target.owners))


def _message(target: Notifying, estate: str, title: str, body: str) -> Message:
    whole = f"policyeng: {plain(estate)}: {title}"
    return Message(target=target.name, estate=estate, title=whole[:_TITLE], body=body)


def _owned(news: RunChanges, target: Notifying, owner: str, changes: Sequence[FindingChange]) -> Message:
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
    says = "no longer fails, or is gone:" if change.fixed else _SAYS[span.outcome]
    where = f"{plain(shorten_id(span.resource), 80)} ({plain(span.part, 80)})"
    return f"{span.severity} {plain(span.policy, 60)} {says} {where}"


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
    judged = f"{count(run.parts, 'part')} judged, {run.summary.strict_compliance:g} % compliant. {standing}"
    parts = [_since(news), judged, *([_list_lines(lines, len(worst), _OTHERS, "report")] if worst else [])]
    return "\n\n".join([*parts, "From now on you are told what is new and what is fixed."])
