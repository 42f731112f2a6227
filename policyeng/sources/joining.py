"""Several documents joined into one snapshot: no resource twice, no document hidden by another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, get_args

from policyeng.models import Origin, Problem, Snapshot, lowered
from policyeng.sources.apart import kept_apart
from policyeng.sources.reading import Collection, Loaded, Noun, Placed

T = TypeVar("T")

_COLLECTIONS: tuple[Collection, ...] = get_args(Collection)


class _Entry(NamedTuple, Generic[T]):
    """One entry among all documents: `key` tells entries apart, `says` is what makes two of them the same.

    `file` is that of the document, also where the entry stands in another that is read as part of it.
    """

    file: str
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
        texts={file: text for document in documents for file, text in document.texts().items()},
    ).model_copy(update=nouns)
    return snapshot, tuple(problems)


def _incomplete(document: Loaded) -> Iterator[str]:
    yield from document.reading.incomplete
    if document.reading.truncated:
        yield f"{document.file}: {document.reading.truncated}"


def _resources(documents: Iterable[Loaded]) -> Iterator[_Entry[Placed]]:
    for document in documents:
        every = document.reading.resources
        for placed, origin in zip(every, document.origins(every), strict=True):
            identity = placed.resource["id"]
            yield _Entry(document.file, lowered(identity), f"resource `{identity}`", placed, placed.resource, origin)


def _stated(documents: Iterable[Loaded], collection: Collection) -> Iterator[_Entry[Noun]]:
    """Entries of one collection; quotas and metrics have no id, so each of them is its own."""
    for document in documents:
        every = [stated for stated in document.reading.stated if stated.collection == collection]
        for stated, origin in zip(every, document.origins(every), strict=True):
            identity = getattr(stated.noun, "id", None)
            key = f"{document.file}\n{stated.pointer}" if identity is None else lowered(identity)
            yield _Entry(document.file, key, f"{collection[:-1]} `{identity}`", stated.noun, stated.noun, origin)


def _each_once(entries: Iterable[_Entry[T]]) -> tuple[list[_Entry[T]], list[Problem]]:
    kept: dict[str, _Entry[T]] = {}
    problems: list[Problem] = []
    repeated: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        first = kept.setdefault(entry.key, entry)
        if first is entry:
            continue
        if first.says == entry.says and first.file != entry.file:
            repeated[(first.file, entry.file)] += 1
        else:
            problems.append(_conflict(first, entry))
    return list(kept.values()), problems + [_repetition(*files, count) for files, count in repeated.items()]


def _conflict(first: _Entry[T], second: _Entry[T]) -> Problem:
    places = [f"{entry.origin.file}:{entry.origin.line}" for entry in (first, second)]
    if first.file != second.file and places[0] == places[1]:
        places = [f"{place} as part of {entry.file}" for place, entry in zip(places, (first, second), strict=True)]
    message = f"the {second.called} stands twice: {places[0]} and {places[1]}; the first is judged, remove one of them"
    return Problem(level="error", message=message, place=f"{second.origin.file}:{second.origin.line}")


def _repetition(first: str, second: str, count: int) -> Problem:
    entries = "one entry stands" if count == 1 else f"{count} entries stand"
    message = f"{entries} in `{first}` as well, with the same content; each is judged once"
    return Problem(level="warning", message=message, place=second)
