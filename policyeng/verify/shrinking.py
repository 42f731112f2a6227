"""Shrink documents, examples and snapshots as long as they show the same finding or failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import orjson
from pydantic import ValidationError

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED
from policyeng.bundle.parameters import parameters_of
from policyeng.errors import EngineError, PolicyengError
from policyeng.facts.coverage import is_whole
from policyeng.models import Evaluation, Finding, JsonObject, Severity, Snapshot
from policyeng.verify.example_documents import document_of, drop_unreadable, example_of, is_sayable, read
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json, Place, copied, put_value, value_in

#: The plainest values, tried in this order at each place.
_PLAIN: tuple[Json, ...] = (None, {}, [], "", "a", 0, 1, True, False)


class _Spent(Exception):  # noqa: N818  # not an error: the trials are used up
    pass


class _Trials:
    """The predicate for smaller documents, with a limit on its calls."""

    def __init__(self, holds: Callable[[Json], bool], most: int) -> None:
        self._holds = holds
        self._left = most

    def holds(self, document: Json) -> bool:
        """Call the predicate.

        Raises:
            _Spent: the limit is reached.
        """
        if self._left == 0:
            raise _Spent
        self._left -= 1
        return self._holds(document)


def shrink(document: Json, holds: Callable[[Json], bool], *, most: int = 3000, plainer: bool = True) -> Json:
    """Return the smallest document found for which `holds` is true; it must be true for the given document.

    Args:
        document: any JSON; it does not change.
        holds: the predicate for smaller documents; the result must depend on nothing else.
        most: the maximum number of calls.
        plainer: also write plainer values; otherwise every remaining value is an original one.
    """
    trials = _Trials(holds, most)
    smallest = [copied(document)]
    try:
        before: Json = object  # type: ignore[assignment]  # equal to no document
        while before != smallest[0]:
            before = copied(smallest[0])
            _pass(smallest, trials, plainer=plainer)
    except _Spent:
        pass
    return smallest[0]


def _pass(smallest: list[Json], trials: _Trials, *, plainer: bool) -> None:
    """Go through the document from the top, removing members and optionally writing plainer values."""
    waiting: list[Place] = [()]
    while waiting:
        place = waiting.pop(0)
        _remove_members(smallest, place, trials)
        value_here = value_in(smallest[0], place)
        for key in _keys(value_here):
            below = (*place, key)
            if not (plainer and _write_plainer(smallest, below, trials)):
                waiting.append(below)


def _keys(value: Json) -> list[str] | list[int]:
    if isinstance(value, dict):
        return sorted(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _remove_members(smallest: list[Json], place: Place, trials: _Trials) -> None:
    value_here = value_in(smallest[0], place)
    size = len(_keys(value_here))
    while size >= 1:
        size = (size + 1) // 2
        removed = False
        for part in _parts(value_in(smallest[0], place), size):
            removed |= _try_without(smallest, place, part, trials)
        if size == 1 and not removed:
            return


def _parts(value_here: Json, size: int) -> Iterator[list[str | int]]:
    """Yield the keys in runs of a size, the last run first, because positions before it stay valid."""
    keys: list[str | int] = list(_keys(value_here))
    for start in reversed(range(0, len(keys), size)):
        yield keys[start : start + size]


def _try_without(smallest: list[Json], place: Place, part: Sequence[str | int], trials: _Trials) -> bool:
    value_here = value_in(smallest[0], place)
    if isinstance(value_here, dict):
        fewer: Json = {key: value for key, value in value_here.items() if key not in part}
    elif isinstance(value_here, list):
        fewer = [value for position, value in enumerate(value_here) if position not in part]
    else:
        return False
    return _try_value(smallest, place, fewer, trials)


def _write_plainer(smallest: list[Json], place: Place, trials: _Trials) -> bool:
    """Write a plainer value at a place if possible; return whether nothing remains to do below it."""
    value_here = value_in(smallest[0], place)
    for plain in _PLAIN:
        if _same(plain, value_here):
            return True
        if _try_value(smallest, place, plain, trials):
            return True
    if isinstance(value_here, str):
        _shorten(smallest, place, trials)
    return not isinstance(value_here, dict | list)


def _same(left: Json, right: Json) -> bool:
    return type(left) is type(right) and left == right


def _shorten(smallest: list[Json], place: Place, trials: _Trials) -> None:
    """Cut runs of characters from a text."""
    value_here = value_in(smallest[0], place)
    size = len(value_here) if isinstance(value_here, str) else 0
    while size > 1:
        size //= 2
        start = 0
        while isinstance(value_here, str) and start < len(value_here):
            if not _try_value(smallest, place, value_here[:start] + value_here[start + size :], trials):
                start += size
            value_here = value_in(smallest[0], place)


def _try_value(smallest: list[Json], place: Place, value: Json, trials: _Trials) -> bool:
    candidate = value if not place else copied(smallest[0])
    if place:
        put_value(candidate, place, copied(value))
    if not trials.holds(candidate):
        return False
    smallest[0] = candidate
    return True


_Found = TypeVar("_Found")

#: The note on an example that is not shrunk because its result does not recur.
NOT_AGAIN = "it did not recur in the same example, which is not shrunk"


@dataclass(frozen=True)
class Smallest(Generic[_Found]):
    """The result of shrinking.

    Attributes:
        found: the result in the smallest example.
        note: why the example is not smaller, or why `policyeng check` cannot read it; empty if neither applies.
    """

    found: _Found
    example: Example
    note: str = ""


def shrink_example(
    bundle: Bundle,
    example: Example,
    found: _Found,
    find: Callable[[Example, Snapshot], _Found | None],
    *,
    most: int = 3000,
) -> Smallest[_Found]:
    """Shrink an example; every step goes through the reader if the result remains there.

    Args:
        bundle: the bundle whose parameters the example has.
        example: the example with the result.
        found: the result.
        find: returns the result in another example, or None. An engine error ends the search with the last result.
        most: the maximum number of calls of `find`.
    """
    search = _ExampleSearch(bundle, find, is_sayable(dict(example.parameters)))
    start, note = document_of(example), ""
    for candidate in drop_unreadable(start):
        if search.holds(candidate):
            start = candidate
            break
    else:
        search.through_reader = False
        if search.holds(start):
            needed = (
                "parts that no file can represent together"
                if example.document.get("documents")
                else "a resource that the reader refuses"
            )
            note = f"it needs {needed}"
        else:
            reason = f"shrinking ended early: {search.failure}" if search.failure else NOT_AGAIN
            return Smallest(found, example, reason)
    shrink(start, search.holds, most=most)
    if search.failure:
        note = f"shrinking ended early: {search.failure}"
    left, result = search.last or (example, found)
    return Smallest(result, left, note)


class _ExampleSearch(Generic[_Found]):
    """The predicate for shrinking, with the last result."""

    def __init__(self, bundle: Bundle, find: Callable[[Example, Snapshot], _Found | None], needs_toml: bool) -> None:
        self._bundle = bundle
        self._find = find
        self._needs_toml = needs_toml
        self.through_reader = True
        self.last: tuple[Example, _Found] | None = None
        self.failure = ""

    def holds(self, document: Json) -> bool:
        """Check whether an example has the result, too."""
        if self.failure:
            return False
        try:
            example = example_of(document)
            parameters_of(self._bundle, example.parameters)
            snapshot = read(example.document, self._bundle) if self.through_reader else example.snapshot
        except (ValidationError, PolicyengError, AttributeError, KeyError, TypeError, ValueError):
            return False  # not an example
        if snapshot is None or (self._needs_toml and not is_sayable(dict(example.parameters))):
            return False
        try:
            found = self._find(example, snapshot)
        except EngineError as error:
            self.failure = str(error)
            return False
        if found is not None:
            self.last = (example, found)
        return found is not None


#: The evaluation of `policyeng check`; only the bundle and the snapshot vary.
Evaluator = Callable[[Bundle, Snapshot], Evaluation]

#: Placeholders in ids for an unknown subscription, resource group or workspace; no reader accepts them in a snapshot.
_OPEN = re.compile(r"\{[^{}/]*\}")


@dataclass(frozen=True)
class Minimised:
    """A minimized snapshot.

    Attributes:
        document: a native snapshot without its version; its values are those of the complete one.
        finding: the failure.
        whole: the original snapshot as a native document.
        notes: notes for the reader, one sentence each.
    """

    document: JsonObject
    finding: Finding
    whole: JsonObject
    notes: tuple[str, ...] = ()


def failing(findings: Sequence[Finding], fail_on: Severity = Severity.LOW) -> list[str]:
    """Return the ids of policies that fail at or above a severity without exemption: most severe first, then by id."""
    severities = {
        finding.policy: finding.severity
        for finding in findings
        if finding.is_failure and finding.severity.rank >= fail_on.rank
    }
    return sorted(severities, key=lambda policy: (-severities[policy].rank, policy))


def minimize(
    bundle: Bundle, snapshot: Snapshot, policy: str, evaluate: Evaluator, *, most: int = 5000
) -> Minimised | None:
    """Return the smallest document on which a policy still fails, on the same resource or on another one.

    It is 1-minimal: without any one member of an object or a list, the policy would not fail or the reader would
    refuse the document. Values stay as they are.

    Args:
        bundle: the bundle with the policy that fails.
        snapshot: the snapshot on which it fails.
        policy: the id of the policy.
        evaluate: evaluates every smaller snapshot; the result must depend on nothing else.
        most: the maximum number of evaluations.

    Returns:
        None if the policy does not fail on the native form.
    """
    search = _MinimizeSearch(bundle.only([entry for entry in bundle.policies if entry.id == policy]), evaluate)
    whole, notes = native(snapshot)
    if not search.holds(whole):
        return None
    shrink(whole, search.holds, most=most, plainer=False)
    if search.tried > most:
        notes.append(f"a smaller snapshot may exist: the search ended after {most:,} attempts")
    document, finding = search.last
    return Minimised(document, finding, whole, tuple(notes))


def native(snapshot: Snapshot) -> tuple[JsonObject, list[str]]:
    """Return a snapshot as a native document without its version, and notes on what differs there."""
    document: JsonObject = {}
    if snapshot.scope:
        document["scope"] = snapshot.scope
    if snapshot.taken_at:
        document["takenAt"] = snapshot.taken_at.isoformat()
    document["resources"] = list(snapshot.resources)
    for kind in STATED:
        if entries := getattr(snapshot, kind):
            document[kind] = [entry.model_dump(mode="json", by_alias=True, exclude_defaults=True) for entry in entries]
    if snapshot.incomplete:
        document["incomplete"] = list(snapshot.incomplete)
    if not is_whole(snapshot.covers):
        document["covers"] = list(snapshot.covers or ())
    return _fill_placeholders(document)


def text_of(document: JsonObject) -> str:
    """Return a document as printed, its version first."""
    return orjson.dumps({"snapshotVersion": 1, **document}, option=orjson.OPT_INDENT_2).decode()


def _fill_placeholders(document: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return the document with the placeholders of ids replaced everywhere, and a note on them."""
    ids = [str(resource.get("id")) for resource in document["resources"]]
    open_parts = sorted({placeholder for identity in ids for placeholder in _OPEN.findall(identity)})
    text = orjson.dumps(document).decode()
    for placeholder in open_parts:
        text = text.replace(placeholder, placeholder.strip("{}"))
    listed = ", ".join(f"`{placeholder}`" for placeholder in open_parts)
    note = f"the input does not state where the resources are: {listed} in their ids are replaced by names"
    notes = [note] if open_parts else []
    placed: JsonObject = orjson.loads(text)
    return placed, notes


class _MinimizeSearch:
    """The predicate for shrinking, with the last document for which it was true."""

    def __init__(self, alone: Bundle, evaluate: Evaluator) -> None:
        self._alone = alone
        self._evaluate = evaluate
        self.tried = 0
        self.last: tuple[JsonObject, Finding]

    def holds(self, document: Json) -> bool:
        """Check whether the reader accepts a document and the policy fails on it."""
        self.tried += 1
        if not isinstance(document, dict):
            return False
        try:
            snapshot = read(document)
        except PolicyengError:
            return False
        if snapshot is None:
            return False
        findings = self._evaluate(self._alone, snapshot).findings
        found = next((finding for finding in findings if finding.is_failure), None)
        if found is not None:
            self.last = (document, found)
        return found is not None
