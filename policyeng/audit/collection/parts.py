"""The parts of an estate: files or folders of its directories, files and URLs, or live Azure."""

from __future__ import annotations

import base64
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import IO, Any, Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import orjson

from policyeng.audit.collection import azure
from policyeng.audit.collection.azure.clouds import find_cloud
from policyeng.bundle.loader import WantedInputs
from policyeng.configuration.settings import EstateSettings
from policyeng.errors import InputError
from policyeng.models import LedgerEntry, Problem, Snapshot, relevant_entries
from policyeng.models.findings import as_warning
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, refuse_size
from policyeng.sources.detection import FORMATS
from policyeng.sources.discovery import (
    EVERYTHING,
    FileDependency,
    FileWalk,
    Found,
    LeftOut,
    Named,
    answer,
    digest_of,
    display,
    find_inputs,
    record_queries,
)
from policyeng.sources.left_out import Inspection
from policyeng.sources.parsed import problem_of
from policyeng.sources.reader import SUFFIXES, read_inputs

SCHEMES = ("https://", "http://")
#: How long a server may be silent, in seconds.
TIMEOUT = 30.0
#: How long a document may take as a whole, redirects included, in seconds.
DEADLINE = 300.0
_REMEDY = "see that it can be reached, and that it may be read without signing in"


def is_url(given: str) -> bool:
    """Check whether an input is a URL."""
    return given.lower().startswith(SCHEMES)


def hide_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment, which can be secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def fetched(url: str, max_bytes: int = DEFAULT_MAX_BYTES, *, deadline: float = DEADLINE) -> bytes:
    """Fetch the content of a URL. A user and a password in it are sent to its own host only.

    Args:
        url: the URL.
        max_bytes: the largest size.
        deadline: the longest time in seconds, even if bytes still arrive.

    Raises:
        InputError: it cannot be fetched, exceeds a limit, or redirects from https to http.
    """
    place, limit = hide_secrets(url), _Limit(deadline)
    try:
        with limit, build_opener(_OntoNoWorse, _LimitedHandler(limit)).open(_request(url), timeout=TIMEOUT) as response:
            content: bytes = response.read(max_bytes + 1)
            left: int | None = response.length
    except (OSError, HTTPException, ValueError) as error:
        if limit.passed:  # the connection was ended for that
            raise _raise_timeout(place, deadline) from None
        raise _failed(place, error) from None
    if limit.passed:
        raise _raise_timeout(place, deadline)
    refuse_size(len(content), place, max_bytes)
    if left:
        raise _refuse(place, f"cut off {left} bytes before its end")
    return content


class _Limit:
    """A limit on the total time of connections; timeouts of sockets start again with every byte."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until

    def add(self, connected: socket.socket) -> None:
        """Add an open connection."""
        self._sockets.append(connected)
        if self.passed:
            self._end()

    def _end(self) -> None:
        for each in self._sockets:
            with suppress(OSError):  # closed already
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # of TLS too, which another thread is reading


def _failed(place: str, error: Exception) -> InputError:
    if isinstance(error, HTTPError):
        with error:
            return _refuse(place, f"the server answers {error.code}")
    return _refuse(place, _reason(error.reason if isinstance(error, URLError) else error))


def _raise_timeout(place: str, deadline: float) -> InputError:
    remedy = "see that the server is fast enough, or set `deadline` of the estate"
    return InputError(f"is not fetched within {deadline:g} seconds", place=(place,), remedy=remedy)


class _LimitedConnection(HTTPConnection):
    def __init__(self, limit: _Limit, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._limit = limit

    def connect(self) -> None:
        super().connect()
        self._limit.add(self.sock)


class _LimitedSecureConnection(_LimitedConnection, HTTPSConnection):
    pass


class _LimitedHandler(HTTPSHandler, HTTPHandler):
    """A handler of http and https URLs with a time limit."""

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: Request) -> HTTPResponse:
        """Open a URL."""
        return self.do_open(partial(_LimitedConnection, self._limit), req)

    def https_open(self, req: Request) -> HTTPResponse:
        """Open a URL."""
        return self.do_open(partial(_LimitedSecureConnection, self._limit), req)


class _OntoNoWorse(HTTPRedirectHandler):
    """Follows to http(s) only, and from https to nothing that anybody on the way could change."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request that follows."""
        allowed = SCHEMES[:1] if req.type == "https" else SCHEMES
        if not newurl.lower().startswith(allowed):
            fp.close()
            raise InputError(
                f"leads to `{hide_secrets(newurl)}`",
                place=(hide_secrets(req.full_url),),
                remedy="name that one, if it is right",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _request(url: str) -> Request:
    parts = urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")
    request = Request(parts._replace(netloc=host, fragment="").geturl(), headers={"User-Agent": "policyeng"})  # noqa: S310  # only http(s) comes here
    if credentials:
        token = base64.b64encode(unquote(credentials).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _reason(error: object) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be fetched ({str(text).lower()})"


def _refuse(place: str, message: str) -> InputError:
    return InputError(message, place=(place,), remedy=_REMEDY)


_SCHEME = "azure://"


def live_address(estate: EstateSettings) -> str:
    """Return the address of an estate in live Azure, the cloud and an ARM id: `azure://CLOUD/subscriptions/...`.

    Raises:
        UsageError: the subscription, a name or the cloud is invalid, or the libraries are not installed.
    """
    azure.require_libraries()
    wanted = azure.CollectionScope(
        subscription=estate.subscription,
        taken_at=datetime.now(UTC),
        resource_group=estate.resource_group,
        workspace=estate.workspace,
    )
    return f"{_SCHEME}{find_cloud(estate.cloud).name}{wanted.scope}"


def is_live(address: str) -> bool:
    """Check whether a part is in live Azure."""
    return address.startswith(_SCHEME)


def part_name(address: str) -> str:
    """Return the name of a part in live Azure, an ARM id."""
    return "/" + address.removeprefix(_SCHEME).partition("/")[2]


def collected(address: str) -> bytes:
    """Collect the native snapshot of an address of `live_address`.

    Raises:
        InputError: the scope does not exist, nothing in it can be read, or there is no token.
        UsageError: the address of the resource manager in the environment is invalid.
    """
    cloud, *scope = address.removeprefix(_SCHEME).split("/")
    named = dict(zip(scope[::2], scope[1::2], strict=True))
    wanted = azure.CollectionScope(
        subscription=named["subscriptions"],
        taken_at=datetime.now(UTC),
        resource_group=named.get("resourceGroups", ""),
        workspace=named.get("workspaces", ""),
    )
    where = find_cloud(cloud, os.environ.get(azure.ENDPOINT_VARIABLE, ""))
    return orjson.dumps(azure.collect(wanted, where))


class Collected(NamedTuple):
    """A part that was read.

    Attributes:
        name: unique in the estate, and the same every time.
        snapshot: None if it could not be read, or if nothing in it can be evaluated (without errors in `problems`).
        problems: of reading.
        queries: the file queries for reading, with paths below the directory of the part.
        ledger: what was not read; for a part with a snapshot, that has it.
    """

    name: str
    snapshot: Snapshot | None
    problems: Sequence[Problem] = ()
    queries: Sequence[FileDependency] = ()
    ledger: tuple[LedgerEntry, ...] = ()

    @property
    def remarks(self) -> tuple[Problem, ...]:
        """The problems, and the relevant entries of the ledger as warnings, for what lists only problems."""
        return (*self.problems, *map(as_warning, relevant_entries(self.ledger)))


@dataclass(frozen=True, slots=True)
class PartSource:
    """The source of a part.

    Attributes:
        name: of the part, also in findings and messages; independent of the directory of the estate.
        address: a path, a URL, or that of live Azure.
        found: whether it was found in a directory, not named.
        extent: a file, the files of a folder, or the files of a folder and its subfolders (`tree`).
        deadline: the timeout of a URL in seconds.
        walk: the files to exclude from directories.
        any_suffix: as of `Named`.
    """

    name: str
    address: str
    found: bool = False
    extent: Literal["file", "folder", "tree"] = "file"
    deadline: float = DEADLINE
    walk: FileWalk = EVERYTHING
    any_suffix: bool = False


def parts_of(estate: EstateSettings, wanted: WantedInputs, walk: FileWalk = EVERYTHING) -> Iterator[Collected]:
    """Read the parts of an estate one by one.

    Args:
        estate: the estate.
        wanted: the inputs of the policies.
        walk: the files to exclude from directories.
    """
    for source in sources_of(estate, walk):
        yield read(source, wanted)


def sources_of(estate: EstateSettings, walk: FileWalk = EVERYTHING) -> Iterator[PartSource | Collected]:
    """Yield the sources of the parts of an estate. Those that cannot be listed are parts with problems.

    Args:
        estate: the estate.
        walk: the files to exclude from directories.

    Raises:
        UsageError: the configuration of live Azure is invalid.
    """
    if estate.subscription:
        address = live_address(estate)
        yield PartSource(part_name(address), address)
    seen: Counter[str] = Counter()
    deadline = estate.deadline.total_seconds()
    for given in estate.inputs:
        local = _folders if estate.together else _local
        for source in (
            [PartSource(hide_secrets(given), given, deadline=deadline)] if is_url(given) else local(Path(given), walk)
        ):
            seen[source.name] += 1
            again = seen[source.name]
            yield (
                source if again == 1 else Collected(f"{source.name} ({again})", None, [_refuse_duplicate(source.name)])
            )


def read(source: PartSource | Collected, wanted: WantedInputs) -> Collected:
    """Read a part, unless it is read already."""
    if isinstance(source, Collected):
        return source
    try:
        with record_queries() as queries:
            content = _content(source)
            inputs = read_inputs([*_documents(source, content)], stdin=content, **wanted)
    except InputError as error:
        return Collected(source.name, None, [problem_of(error)])
    if inputs.read or inputs.snapshot.documents:
        return Collected(source.name, inputs.snapshot, inputs.problems, list(_below(source, queries, content)))
    return Collected(source.name, None, inputs.problems, ledger=inputs.snapshot.ledger)


def _documents(source: PartSource, content: bytes | None) -> Iterator[Found]:
    """Yield the documents of a part."""
    if content is not None:
        yield Named(source.name, None, source.found)
    elif source.extent == "file":
        yield Named(source.name, Path(source.address), source.found, any_suffix=source.any_suffix)
    else:
        above = Path(source.address).parent
        for named in find_inputs([source.address], SUFFIXES, source.walk, deep=source.extent == "tree"):
            if isinstance(named, Named) and named.path is not None:
                yield named._replace(file=display(named.path.relative_to(above)))
            elif isinstance(named, InputError):  # what is left out is on the ledger of the run
                yield named


def is_unchanged(source: PartSource, queries: Iterable[FileDependency]) -> bool:
    """Check whether all file queries of a part have the same results as before; live Azure is always read again."""
    if is_live(source.address):
        return False
    try:
        return all(_answer(source, question, path) == answer for question, path, answer in queries)
    except InputError:  # a URL that gives nothing is a problem of the run
        return False


def _answer(source: PartSource, question: str, path: Path) -> str:
    if question == "found":
        return _describe_source(source)
    if is_url(source.address):
        return digest_of(fetched(source.address, deadline=source.deadline))
    return answer(question, Path(source.address).parent / path)


def _describe_source(source: PartSource) -> str:
    """Return how a part was found, as an answer that is compared before its evaluation is reused."""
    return " ".join([str(source.found), *source.walk.exclude, *(["--all-files"] if source.walk.all_files else [])])


def _below(source: PartSource, queries: Iterable[FileDependency], content: bytes | None) -> Iterator[FileDependency]:
    yield FileDependency("found", Path(), _describe_source(source))
    if content is not None:
        yield FileDependency("content", Path(), digest_of(content))
    above = Path(source.address).parent
    for one in queries:
        yield one._replace(path=one.path.relative_to(above) if one.path.is_relative_to(above) else one.path)


def _content(source: PartSource) -> bytes | None:
    """Fetch the content of an address; None for a path, which is read later with its limits."""
    if is_live(source.address):
        return collected(source.address)
    return fetched(source.address, deadline=source.deadline) if is_url(source.address) else None


def _local(path: Path, walk: FileWalk) -> Iterator[PartSource | Collected]:
    inspection = Inspection(FORMATS)
    for named in find_inputs([path], SUFFIXES, walk):
        if isinstance(named, InputError):
            yield Collected(display(path), None, [problem_of(named)])
        elif isinstance(named, LeftOut):
            if entries := tuple(inspection.entries(named)):
                yield Collected(named.file, None, ledger=entries)
        elif isinstance(named, LedgerEntry):
            yield Collected(named.place, None, ledger=(named,))
        elif named.path is not None:
            within = named.path.relative_to(path) if named.found else Path(named.path.name)
            yield PartSource(display(within), str(named.path), named.found, any_suffix=named.any_suffix)


def _folders(path: Path, walk: FileWalk) -> Iterator[PartSource | Collected]:
    """Yield a part for each folder directly below a directory, and one for the files directly in it."""
    seen: set[Path] = set()
    if not walk.excludes_for_operator(path.resolve()):  # nor below it
        walk = walk._replace(config=path / "policyeng.toml")
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


def _refuse_duplicate(name: str) -> Problem:
    message = "two parts of the estate have this name, and only the first is evaluated"
    remedy = "name the directory above both as the input, or rename one"
    return Problem(level="error", message=f"{message}; {remedy}", place=name)
