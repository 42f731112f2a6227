"""The parts of an estate: the files or folders of its directories, each file and URL that it names, or live Azure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from policyeng.audit.collection import azure
from policyeng.audit.collection.azure.clouds import cloud_of
from policyeng.audit.collection.urls import DEADLINE, fetched, is_url, shown
from policyeng.bundle.loader import WantedInputs
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import InputError
from policyeng.models import Problem, Snapshot
from policyeng.sources.discovery import Found, Named, Skipped, display, named_inputs
from policyeng.sources.file_dependencies import FileDependency, answer, digest_of, witnessed
from policyeng.sources.file_patterns import EVERYTHING, FileWalk
from policyeng.sources.problems import problem_of
from policyeng.sources.reader import SUFFIXES, read_named

_SCHEME = "azure://"


def live_address(estate: EstateSettings) -> str:
    """Where the part of an estate in live Azure is read: `azure://CLOUD/subscriptions/...`, the cloud and an ARM id.

    Raises:
        UsageError: what the configuration says is no subscription, name or cloud, or the libraries are not installed.
    """
    azure.require_libraries()
    wanted = azure.CollectionScope(
        subscription=estate.subscription,
        taken_at=datetime.now(UTC),
        resource_group=estate.resource_group,
        workspace=estate.workspace,
    )
    return f"{_SCHEME}{cloud_of(estate.cloud).name}{wanted.scope}"


def is_live(address: str) -> bool:
    """Whether a part is read from live Azure."""
    return address.startswith(_SCHEME)


def part_name(address: str) -> str:
    """The ARM id that a part in live Azure is named by."""
    return "/" + address.removeprefix(_SCHEME).partition("/")[2]


def collected(address: str) -> bytes:
    """The native snapshot of what stands at an address of `live_address`.

    Raises:
        InputError: it is not there, nothing of it can be read, or there is no token to ask with.
        UsageError: the address of the resource manager in the environment is none.
    """
    cloud, *scope = address.removeprefix(_SCHEME).split("/")
    named = dict(zip(scope[::2], scope[1::2], strict=True))
    wanted = azure.CollectionScope(
        subscription=named["subscriptions"],
        taken_at=datetime.now(UTC),
        resource_group=named.get("resourceGroups", ""),
        workspace=named.get("workspaces", ""),
    )
    where = cloud_of(cloud, os.environ.get(azure.ENDPOINT_VARIABLE, ""))
    return orjson.dumps(azure.collect(wanted, where))


class Collected(NamedTuple):
    """A part that was read.

    Attributes:
        name: unique in the estate, and the same every time.
        snapshot: None when it could not be read, or when nothing in it can be judged; then no problem is an error.
        problems: what went wrong on the way.
        asked: what was asked of files on the way, by paths below the directory of the part.
    """

    name: str
    snapshot: Snapshot | None
    problems: Sequence[Problem] = ()
    asked: Sequence[FileDependency] = ()


@dataclass(frozen=True, slots=True)
class PartSource:
    """What one part is read from, perhaps in another process.

    Attributes:
        name: of the part; findings and messages name its file so, wherever the directory of the estate lies.
        address: a path, a URL, or that of live Azure.
        found: it was found in a directory, and not named.
        extent: the address is of a file, or the part is all files of a folder, or of it and all below (`tree`).
        deadline: how many seconds a URL may take.
        walk: what is left out of directories.
    """

    name: str
    address: str
    found: bool = False
    extent: Literal["file", "folder", "tree"] = "file"
    deadline: float = DEADLINE
    walk: FileWalk = EVERYTHING


def parts_of(estate: EstateSettings, wanted: WantedInputs, walk: FileWalk = EVERYTHING) -> Iterator[Collected]:
    """Read the parts of an estate, one after the other.

    Args:
        estate: what is audited.
        wanted: what the policies judge.
        walk: what is left out of directories.
    """
    for source in sources_of(estate, walk):
        yield read(source, wanted)


def sources_of(estate: EstateSettings, walk: FileWalk = EVERYTHING) -> Iterator[PartSource | Collected]:
    """What the parts of an estate are read from; as parts that could not be read, what could not even be listed.

    Args:
        estate: what is audited.
        walk: what is left out of directories.

    Raises:
        UsageError: live Azure cannot be asked as the estate says.
    """
    if estate.subscription:
        address = live_address(estate)
        yield PartSource(part_name(address), address)
    seen: Counter[str] = Counter()
    deadline = estate.deadline.total_seconds()
    for given in estate.inputs:
        local = _folders if estate.together else _local
        for source in (
            [PartSource(shown(given), given, deadline=deadline)] if is_url(given) else local(Path(given), walk)
        ):
            seen[source.name] += 1
            again = seen[source.name]
            yield source if again == 1 else Collected(f"{source.name} ({again})", None, [_twice(source.name)])


def read(source: PartSource | Collected, wanted: WantedInputs) -> Collected:
    """Read one part, if that has not been done."""
    if isinstance(source, Collected):
        return source
    try:
        with witnessed() as asked:
            content = _content(source)
            inputs = read_named(_documents(source, content), content, **wanted)
    except InputError as error:
        return Collected(source.name, None, [problem_of(error)])
    said = [*inputs.problems]
    if inputs.read or inputs.snapshot.documents:
        return Collected(source.name, inputs.snapshot, said, list(_below(source, asked, content)))
    said += [Problem(level="warning", message=f"holds nothing to judge: {why}", place=at) for at, why in inputs.skipped]
    return Collected(source.name, None, said)


def _documents(source: PartSource, content: bytes | None) -> Iterator[Found]:
    """What is to be read of a part."""
    if content is not None:
        yield Named(source.name, None, source.found)
    elif source.extent == "file":
        yield Named(source.name, Path(source.address), source.found)
    else:
        above = Path(source.address).parent
        for named in named_inputs([source.address], SUFFIXES, source.walk, deep=source.extent == "tree"):
            if isinstance(named, Named) and named.path is not None:
                yield named._replace(file=display(named.path.relative_to(above)))
            else:
                yield named


def is_unchanged(source: PartSource, asked: Iterable[FileDependency]) -> bool:
    """Whether all that was asked of files while a part was read is answered as it was; live Azure is always read."""
    if is_live(source.address):
        return False
    try:
        return all(_answer(source, question, path) == answer for question, path, answer in asked)
    except InputError:  # a URL that gives nothing is a problem of the run
        return False


def _answer(source: PartSource, question: str, path: Path) -> str:
    if question == "found":
        return _found(source)
    if is_url(source.address):
        return digest_of(fetched(source.address, deadline=source.deadline))
    return answer(question, Path(source.address).parent / path)


def _found(source: PartSource) -> str:
    """How a part was found: the answer to a question that is asked again before a part is taken over."""
    return " ".join([str(source.found), *source.walk.exclude])


def _below(source: PartSource, asked: Iterable[FileDependency], content: bytes | None) -> Iterator[FileDependency]:
    yield FileDependency("found", Path(), _found(source))
    if content is not None:
        yield FileDependency("content", Path(), digest_of(content))
    above = Path(source.address).parent
    for one in asked:
        yield one._replace(path=one.path.relative_to(above) if one.path.is_relative_to(above) else one.path)


def _content(source: PartSource) -> bytes | None:
    """What stands at an address; None for a path, which is read where its limits are known."""
    if is_live(source.address):
        return collected(source.address)
    return fetched(source.address, deadline=source.deadline) if is_url(source.address) else None


def _local(path: Path, walk: FileWalk) -> Iterator[PartSource | Collected]:
    for named in named_inputs([path], SUFFIXES, walk):
        if isinstance(named, InputError):
            yield Collected(display(path), None, [problem_of(named)])
        elif isinstance(named, Skipped):
            message = f"skipped: {named.reason}"
            yield Collected(named.file, None, [Problem(level="warning", message=message, place=named.file)])
        elif named.path is not None:
            within = named.path.relative_to(path) if named.found else Path(named.path.name)
            yield PartSource(display(within), str(named.path), named.found)


def _folders(path: Path, walk: FileWalk) -> Iterator[PartSource | Collected]:
    """A part for each folder directly below a directory, and one for the files that lie directly in it."""
    seen: set[Path] = set()
    for source in _local(path, walk):
        if isinstance(source, Collected) or not source.found:
            yield source
            continue
        first, *more = Path(source.address).relative_to(path).parts
        folder = path / first if more else path
        if folder not in seen:
            seen.add(folder)
            yield PartSource(
                display(Path(folder.name)), str(folder), found=True, extent="tree" if more else "folder", walk=walk
            )


def _twice(name: str) -> Problem:
    message = "two parts of the estate have this name, and the first is judged"
    remedy = "name the directory above both as the input, or rename one"
    return Problem(level="error", message=f"{message}; {remedy}", place=name)
