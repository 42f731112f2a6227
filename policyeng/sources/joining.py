"""Several documents joined into one snapshot: no resource twice, no document hidden by another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, get_args

from policyeng.models import Origin, Problem, Snapshot, lowered
from policyeng.sources.apart import kept_apart
from policyeng.sources.reading import Collection, Noun, Placed, Reading
from policyeng.sources.texts import Text

T = TypeVar("T")

_COLLECTIONS: tuple[Collection, ...] = get_args(Collection)


class Loaded(NamedTuple):
    """One document that was read, and the text in which its pointers stand."""

    file: str
    reading: Reading
    text: Text

    def origins(self, pointers: Sequence[str], fields: Sequence[Mapping[str, str]]) -> list[Origin]:
        """Where parts of the document stand."""
        places = self.text.places(pointers)
        return [
            Origin.model_construct(file=self.file, pointer=pointer, line=line, column=column, fields=moved)
            for pointer, (line, column), moved in zip(pointers, places, fields, strict=True)
        ]


class _Entry(NamedTuple, Generic[T]):
    """One entry among all documents: `key` tells entries apart, `says` is what makes two of them the same."""

    key: str
    called: str
    value: T
    says: object
    origin: Origin


def joined(documents: Sequence[Loaded]) -> tuple[Snapshot, tuple[Problem, ...]]:
    """One snapshot of all documents, in their order.

    Two entries with one id are an error that names both places, and the first is judged; the same entry in two files
    is taken once, with a warning. Ids that documents do not state themselves and that would meet are kept apart.
    Different scopes are listed; `taken_at` is the earliest.
    """
    documents = kept_apart(documents)
    resources, problems = _each_once(_resources(documents))
    origins = {entry.key: entry.origin for entry in resources}
    nouns: dict[str, tuple[Noun, ...]] = {}
    for collection in _COLLECTIONS:
        entries, more = _each_once(_stated(documents, collection))
        nouns[collection] = tuple(entry.value for entry in entries)
        problems += more
        if collection in ("approvals", "workloads"):
            origins = {entry.key: entry.origin for entry in entries} | origins
    readings = [document.reading for document in documents]
    # Every part was validated when it was read.
    snapshot = Snapshot.model_construct(
        scope=", ".join(dict.fromkeys(reading.scope for reading in readings if reading.scope)),
        taken_at=min((reading.taken_at for reading in readings if reading.taken_at), default=None),
        resources=tuple(entry.value.resource for entry in resources),
        incomplete=tuple(dict.fromkeys(line for document in documents for line in _incomplete(document))),
        beyond=tuple(dict.fromkeys(line for reading in readings for line in reading.beyond)),
        unreadable={entry.key: entry.value.unreadable for entry in resources if entry.value.unreadable},
        carried={entry.key: entry.value.carried for entry in resources if entry.value.carried},
        origins=origins,
        texts={document.file: document.text for document in documents},
    ).model_copy(update=nouns)
    return snapshot, tuple(problems)


def _incomplete(document: Loaded) -> Iterator[str]:
    yield from document.reading.incomplete
    if document.reading.truncated:
        yield f"{document.file}: {document.reading.truncated}"


def _resources(documents: Iterable[Loaded]) -> Iterator[_Entry[Placed]]:
    for document in documents:
        every = document.reading.resources
        origins = document.origins([placed.pointer for placed in every], [placed.fields for placed in every])
        for placed, origin in zip(every, origins, strict=True):
            identity = placed.resource["id"]
            yield _Entry(lowered(identity), f"resource `{identity}`", placed, placed.resource, origin)


def _stated(documents: Iterable[Loaded], collection: Collection) -> Iterator[_Entry[Noun]]:
    """Entries of one collection; quotas and metrics have no id, so each of them is its own."""
    for document in documents:
        every = [stated for stated in document.reading.stated if stated.collection == collection]
        origins = document.origins([stated.pointer for stated in every], [{}] * len(every))
        for stated, origin in zip(every, origins, strict=True):
            identity = getattr(stated.noun, "id", None)
            key = f"{document.file}\n{stated.pointer}" if identity is None else lowered(identity)
            yield _Entry(key, f"{collection[:-1]} `{identity}`", stated.noun, stated.noun, origin)


def _each_once(entries: Iterable[_Entry[T]]) -> tuple[list[_Entry[T]], list[Problem]]:
    kept: dict[str, _Entry[T]] = {}
    problems: list[Problem] = []
    repeated: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        first = kept.setdefault(entry.key, entry)
        if first is entry:
            continue
        if first.says == entry.says and first.origin.file != entry.origin.file:
            repeated[(first.origin.file, entry.origin.file)] += 1
        else:
            problems.append(_conflict(first, entry))
    return list(kept.values()), problems + [_repetition(*files, count) for files, count in repeated.items()]


def _conflict(first: _Entry[T], second: _Entry[T]) -> Problem:
    places = [f"{entry.origin.file}:{entry.origin.line}" for entry in (first, second)]
    message = f"the {second.called} stands twice: {places[0]} and {places[1]}; the first is judged, remove one of them"
    return Problem(level="error", message=message, place=places[1])


def _repetition(first: str, second: str, count: int) -> Problem:
    entries = "one entry stands" if count == 1 else f"{count} entries stand"
    message = f"{entries} in `{first}` as well, with the same content; each is judged once"
    return Problem(level="warning", message=message, place=second)
