"""The parts of an estate: one for each file of its directories, each file and each URL that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from policyeng.bundle.reader import Wanted
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import InputError
from policyeng.models import Problem, Snapshot
from policyeng.sources import read_inputs
from policyeng.sources.inputs import SUFFIXES
from policyeng.sources.opening import Link, named_inputs
from policyeng.sources.problems import problem_of


class Collected(NamedTuple):
    """A part that was read.

    Attributes:
        name: unique in the estate, and the same every time.
        snapshot: None when it could not be read.
        problems: what went wrong on the way.
    """

    name: str
    snapshot: Snapshot | None
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class Source:
    """Something that one part is read from, which may be in another process: `address` is a path or a URL."""

    name: str
    address: str


def sources_of(estate: EstateSettings) -> Iterator[Source | Collected]:
    """What the parts of an estate are read from, and as parts without a snapshot what could not even be listed."""
    for given in estate.inputs:
        if given.startswith(("http://", "https://")):
            yield Source(given, given)
        else:
            yield from _local(Path(given))


def parts_of(estate: EstateSettings, wanted: Wanted) -> Iterator[Collected]:
    """Read the parts of an estate, one after the other."""
    for source in sources_of(estate):
        yield source if isinstance(source, Collected) else read(source, wanted)


def read(source: Source, wanted: Wanted) -> Collected:
    """Read one part."""
    inputs = read_inputs([source.address], **wanted)
    unread = not inputs.read and not inputs.snapshot.documents
    return Collected(source.name, None if unread else inputs.snapshot, inputs.problems)


def _local(path: Path) -> Iterator[Source | Collected]:
    for named in named_inputs([path], SUFFIXES):
        if isinstance(named, InputError):
            yield Collected(str(path), None, [problem_of(named)])
        elif not isinstance(named, Link) and named.path is not None:
            name = named.path.relative_to(path).as_posix() if named.found else named.path.name
            yield Source(name, str(named.path))
