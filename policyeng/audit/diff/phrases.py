"""Phrases of the reports of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.audit.diff.records import Cause, CauseKind, Comparison, Flip, PathChange
from policyeng.models import Outcome
from policyeng.report.escaping import compact, visible
from policyeng.report.phrases import count, shorten_id

#: The lists of flips with their titles, in the order in which they are shown.
LISTS = {"new": "New", "changed": "Changed", "fixed": "Fixed"}
#: How many places of one cause are written out; the JSON form has them all.
_NAMED = 4
#: A value that is written out is no longer than this.
_LONGEST = 120
_BECAME = {
    "came": "came",
    "went": "went",
    "changed": "changed",
    "began": "began",
    "lapsed": "lapsed",
    "ended": "was taken back",
}
#: How many digits of a digest tell it apart for a reader.
_DIGITS = 12


def cause_sentence(cause: Cause) -> str:
    """Return a cause as a sentence."""
    became = _BECAME[cause.change]
    return visible(f"{_subject(cause)} {became}{_how(cause)}")


def causes_sentences(flip: Flip) -> list[str]:
    """Return a sentence for each alternative set of causes."""
    return [" and ".join(map(cause_sentence, together)) for together in flip.causes]


def _subject(cause: Cause) -> str:
    if cause.kind is CauseKind.POLICY:
        return "the policy"
    if cause.kind is CauseKind.LIBRARY:
        return "what the policy shares with others"
    if cause.kind is CauseKind.PARAMETERS:
        return "the parameters of the policy"
    if cause.kind in (CauseKind.ENGINE, CauseKind.CLOCK):
        return f"the {cause.kind}"
    name = shorten_id(cause.subject) if cause.kind is CauseKind.RESOURCE else cause.subject
    return f"the {cause.kind} {name}"


def _how(cause: Cause) -> str:
    if cause.change in ("began", "lapsed", "ended") or cause.kind is CauseKind.EXEMPTION:
        ends = cause.before if cause.change in ("lapsed", "ended") else cause.after
        word = "it ended" if cause.change == "lapsed" else "until"
        return f" ({word} {ends})" if ends else ""
    if cause.kind in (CauseKind.POLICY, CauseKind.LIBRARY) and cause.before and cause.after:
        shared = f", data at {', '.join(change.path for change in cause.paths[:_NAMED])}" if cause.paths else ""
        return f" from {cause.before[:_DIGITS]} to {cause.after[:_DIGITS]}{shared}"
    if cause.before and cause.after:
        return f" from {cause.before} to {cause.after}"
    if cause.change != "changed" or not cause.paths:
        return ""
    left = len(cause.paths) - _NAMED
    more = f" and {count(left, 'more place')}" if left > 0 else ""
    return f" at {'; at '.join(map(path_sentence, cause.paths[:_NAMED]))}{more}"


def path_sentence(change: PathChange) -> str:
    """Return ``/path, which was 1 and is 2``, or that it was added or removed."""
    was, became = (_shorten(value) for value in (change.before, change.after))
    path = change.path or "the whole of it"
    if change.change == "came":
        return f"{path}, which is {became} and was not there"
    if change.change == "went":
        return f"{path}, which was {was} and is not there"
    return f"{path}, which was {was} and is {became}"


def _shorten(value: object) -> str:
    text = compact(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def flip_words(flip: Flip) -> str:
    """Return `pass to fail`, with an exemption if any."""
    return f"{_outcome(flip.before, exempt=flip.exempt_before)} to {_outcome(flip.after, exempt=flip.exempt_after)}"


def _outcome(outcome: Outcome | None, *, exempt: bool) -> str:
    if outcome is None:
        return "not judged"
    return f"{outcome} (exempt)" if exempt else str(outcome)


def title_of(flips: Sequence[Flip], title: str) -> str:
    """Return the title of a list with its counts."""
    resources = count(len({flip.finding.resource for flip in flips}), "resource")
    return f"{title} ({len(flips)} on {resources})"


def conclude(comparison: Comparison) -> str:
    """Return the exit code, and the numbers of new, changed, fixed and persisting findings."""
    numbers = {name: len(getattr(comparison, name)) for name in (*LISTS, "persisting")}
    words = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    lead = {0: "nothing new fails", 1: "something new fails"}.get(comparison.exit_code, "could not decide")
    return f"exit {comparison.exit_code}: {lead}: {words or 'no finding on either side'}"
