"""The parts of an estate: the files or folders of its directories, each file and URL that it names, or live Azure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from policyeng.audit.collecting.live import collected, is_live, live_address, part_name
from policyeng.audit.collecting.urls import DEADLINE, fetched, is_url, shown
from policyeng.bundle.reader import Wanted
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import InputError
from policyeng.models import Problem, Snapshot
from policyeng.sources.inputs import SUFFIXES, read_named
from policyeng.sources.opening import Found, Named, Skipped, display, named_inputs
from policyeng.sources.problems import problem_of
from policyeng.sources.walking import EVERYTHING, Walk
from policyeng.sources.witness import Asked, answer, digest_of, witnessed


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
    asked: Sequence[Asked] = ()


@dataclass(frozen=True, slots=True)
class Source:
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
    walk: Walk = EVERYTHING


def parts_of(estate: EstateSettings, wanted: Wanted, walk: Walk = EVERYTHING) -> Iterator[Collected]:
    """Read the parts of an estate, one after the other.

    Args:
        estate: what is audited.
        wanted: what the policies judge.
        walk: what is left out of directories.
    """
    for source in sources_of(estate, walk):
        yield read(source, wanted)


def sources_of(estate: EstateSettings, walk: Walk = EVERYTHING) -> Iterator[Source | Collected]:
    """What the parts of an estate are read from; as parts that could not be read, what could not even be listed.

    Args:
        estate: what is audited.
        walk: what is left out of directories.

    Raises:
        UsageError: live Azure cannot be asked as the estate says.
    """
    if estate.subscription:
        address = live_address(estate)
        yield Source(part_name(address), address)
    seen: Counter[str] = Counter()
    deadline = estate.deadline.total_seconds()
    for given in estate.inputs:
        local = _folders if estate.together else _local
        for source in [Source(shown(given), given, deadline=deadline)] if is_url(given) else local(Path(given), walk):
            seen[source.name] += 1
            again = seen[source.name]
            yield source if again == 1 else Collected(f"{source.name} ({again})", None, [_twice(source.name)])


def read(source: Source | Collected, wanted: Wanted) -> Collected:
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


def _documents(source: Source, content: bytes | None) -> Iterator[Found]:
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


def is_unchanged(source: Source, asked: Iterable[Asked]) -> bool:
    """Whether all that was asked of files while a part was read is answered as it was; live Azure is always read."""
    if is_live(source.address):
        return False
    try:
        return all(_answer(source, question, path) == answer for question, path, answer in asked)
    except InputError:  # a URL that gives nothing is a problem of the run
        return False


def _answer(source: Source, question: str, path: Path) -> str:
    if question == "found":
        return _found(source)
    if is_url(source.address):
        return digest_of(fetched(source.address, deadline=source.deadline))
    return answer(question, Path(source.address).parent / path)


def _found(source: Source) -> str:
    """How a part was found: the answer to a question that is asked again before a part is taken over."""
    return " ".join([str(source.found), *source.walk.exclude])


def _below(source: Source, asked: Iterable[Asked], content: bytes | None) -> Iterator[Asked]:
    yield Asked("found", Path(), _found(source))
    if content is not None:
        yield Asked("content", Path(), digest_of(content))
    above = Path(source.address).parent
    for one in asked:
        yield one._replace(path=one.path.relative_to(above) if one.path.is_relative_to(above) else one.path)


def _content(source: Source) -> bytes | None:
    """What stands at an address; None for a path, which is read where its limits are known."""
    if is_live(source.address):
        return collected(source.address)
    return fetched(source.address, deadline=source.deadline) if is_url(source.address) else None


def _local(path: Path, walk: Walk) -> Iterator[Source | Collected]:
    for named in named_inputs([path], SUFFIXES, walk):
        if isinstance(named, InputError):
            yield Collected(display(path), None, [problem_of(named)])
        elif isinstance(named, Skipped):
            message = f"skipped: {named.reason}"
            yield Collected(named.file, None, [Problem(level="warning", message=message, place=named.file)])
        elif named.path is not None:
            within = named.path.relative_to(path) if named.found else Path(named.path.name)
            yield Source(display(within), str(named.path), named.found)


def _folders(path: Path, walk: Walk) -> Iterator[Source | Collected]:
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
            yield Source(
                display(Path(folder.name)), str(folder), found=True, extent="tree" if more else "folder", walk=walk
            )


def _twice(name: str) -> Problem:
    message = "two parts of the estate have this name, and the first is judged"
    remedy = "name the directory above both as the input, or rename one"
    return Problem(level="error", message=f"{message}; {remedy}", place=name)
