"""The scope of a collection, the workers that share its tasks, and the snapshot that they build."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import NamedTuple

from policyeng.audit.collection.azure.resource_types import INSIDE, NETWORKS, SUBNETS, WORKSPACES
from policyeng.errors import UsageError
from policyeng.facts.coverage import LISTED
from policyeng.facts.ids import segments
from policyeng.models import JsonObject, Problem, lowered
from policyeng.redaction import MASK, masked
from policyeng.sources.arm_resource import read_entry

#: The segments of an id in lower case.
_Place = tuple[str, ...]
#: Types and ids, as they were requested.
Lists = Iterable[tuple[str, str]]


class Loss(NamedTuple):
    """The reason for a failed request.

    Attributes:
        reason: a description.
        status: the HTTP status; 0 without a response.
        is_unknown: whether Azure does not know the type here.
        is_unused: whether the subscription has no resources of the service.
    """

    reason: str
    status: int = 0
    is_unknown: bool = False
    is_unused: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether the identity does not have access."""
        return self.status in (401, 403)

    @property
    def is_absent(self) -> bool:
        """Whether no such resource exists. A type that Azure does not know might have another version."""
        return self.is_unused or (self.status == 404 and not self.is_unknown)


def find_covered(requested: Lists, lacking: Lists, resources: Iterable[JsonObject]) -> list[str]:
    """Return sorted entries `TYPE at ID` for the complete lists.

    Lists of each resource of a complete list are combined to one entry for the scope of that list.

    Args:
        requested: the requested lists.
        lacking: the incomplete lists.
        resources: all resources.
    """
    requested = sorted(requested, reverse=True)
    scopes = {(lowered(kind), place): scope for kind, scope in requested if (place := segments(scope)) is not None}
    holes = {(lowered(kind), place) for kind, scope in lacking if (place := segments(scope)) is not None}
    around = {(kind, above) for kind, place in holes for above in _above(place)}
    covered: dict[str, set[_Place]] = {}
    for folded, place in scopes:
        if (folded, place) not in around and not any((folded, above) in holes for above in _above(place)):
            covered.setdefault(folded, set()).add(place)
    parents = _by_type(resources)
    for folded in map(lowered, INSIDE):
        outer = folded.rpartition("/")[0]
        read = covered.setdefault(folded, set())
        unread = {above for one in parents.get(outer, ()) if one not in read for above in _above(one)}
        read |= covered.get(outer, set()) - unread
    covered[lowered(SUBNETS)] = covered.get(lowered(NETWORKS), set())
    ids = {place: scope for (_, place), scope in scopes.items()}
    kinds = {lowered(kind): kind for kind in (*(kind for kind, _ in requested), *INSIDE, *LISTED)}
    return sorted(
        f"{kinds[folded]} at {ids[place]}"
        for folded, places in covered.items()
        for place in places
        if not any(above in places for above in _above(place) if above != place)
    )


def _by_type(resources: Iterable[JsonObject]) -> Mapping[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for one in resources:
        if (place := segments(one["id"])) is not None:
            found.setdefault(lowered(one["type"]), []).append(place)
    return found


def _above(place: _Place) -> Iterator[_Place]:
    """Yield a place and its ancestors."""
    return (place[:depth] for depth in range(len(place) + 1))


#: Members whose values are what users hand to their programs, secrets among them, whatever their names are.
_HANDED = frozenset({"environmentvariables", "environment_variables"})


class SnapshotBuilder:
    """The resources, quotas and metrics of a snapshot, and what is missing.

    Attributes:
        resources: by lower-case id, without secrets; the first one of an id.
        quotas, metrics: in the form of a native snapshot.
        denied: the number of requests without access.
    """

    def __init__(self) -> None:
        self.resources: dict[str, JsonObject] = {}
        self.quotas: list[JsonObject] = []
        self.metrics: list[JsonObject] = []
        self.denied = 0
        self._missing = set[str]()
        self._requested = set[str]()
        self._lists = set[tuple[str, str]]()
        self._lacking = set[tuple[str, str]]()
        self._lock = threading.RLock()
        self._is_closed = False

    @property
    def missing(self) -> list[str]:
        """Return what could not be read, in sorted lines."""
        return sorted(self._missing)

    @property
    def covers(self) -> list[str]:
        """Return sorted entries `TYPE at ID` for the complete lists."""
        return find_covered(self._lists, self._lacking, self.resources.values())

    def request(self, kind: str, home: str) -> None:
        """Note that the list of a type at an id was requested; it is complete without `lack` or `leave`."""
        with self._lock:
            if not self._is_closed:
                self._lists.add((kind, home))

    def take(self, entry: object, kind: str, home: str) -> JsonObject | None:
        """Add an entry of the list of a type at an id. Return None and note a loss if it is not a resource."""
        placed = read_entry(entry, "")
        if isinstance(placed, Problem) and isinstance(entry, dict) and "type" in entry:
            placed = read_entry({key: value for key, value in entry.items() if key != "type"}, "")
        if isinstance(placed, Problem):
            self.lack(kind, home, Loss(f"an entry is left out: {placed.message}"))
            return None
        resource = without_secrets(placed.resource)
        with self._lock:
            return resource if self._is_closed else self.resources.setdefault(lowered(resource["id"]), resource)

    def replace(self, entry: JsonObject) -> None:
        """Replace the resource with the same id."""
        placed = read_entry(entry, "")
        if not isinstance(placed, Problem):
            with self._lock:
                if not self._is_closed:
                    self.resources[lowered(placed.resource["id"])] = without_secrets(placed.resource)

    def first_time(self, target: str) -> bool:
        """Check whether an id is requested for the first time."""
        before = target in self._requested
        self._requested.add(target)
        return not before

    def lack(self, kind: str, home: str, loss: Loss) -> None:
        """Note that a type at and below an id could not be read completely."""
        with self._lock:
            if self._is_closed:
                return
            self.denied += loss.is_denied
            self._missing.add(f"{kind} at {home}: {loss.reason}")
            self._lacking.add((kind, home))

    def leave(self, kind: str, home: str, reason: str) -> None:
        """Note that a type at and below an id was only requested in part."""
        with self._lock:
            if self._is_closed:
                return
            self._missing.add(f"{kind} at {home}, as asked: {reason}")
            self._lacking.add((kind, home))

    def state(self, quotas: list[JsonObject], metrics: list[JsonObject]) -> None:
        """Add quotas and metrics."""
        with self._lock:
            if not self._is_closed:
                self.quotas += quotas
                self.metrics += metrics

    def close(self, reason: str) -> None:
        """End the collection, for a reason that concerns everything; what answers later is not added."""
        with self._lock:
            self._is_closed = True
            # A line without a type concerns all types, and no list counts as complete.
            self._missing.add(reason)
            self._lists.clear()

    def of_type(self, kind: str) -> Iterator[JsonObject]:
        """Return the resources of a type, sorted by id."""
        folded = lowered(kind)
        return (one for _, one in sorted(self.resources.items()) if lowered(one["type"]) == folded)


def without_secrets(resource: JsonObject) -> JsonObject:
    """Return a resource with masked secrets and masked environment variables."""
    shown = _find_unhandled(masked(resource))
    return shown if isinstance(shown, dict) else {}


def _find_unhandled(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: _all_masked(below) if str(key).lower() in _HANDED else _find_unhandled(below)
            for key, below in value.items()
        }
    return [_find_unhandled(below) for below in value] if isinstance(value, list) else value


def _all_masked(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _all_masked(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_all_masked(below) for below in value]
    return MASK if isinstance(value, str) and value else value


_SUBSCRIPTION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Names of resource groups and workspaces: no slash and nothing that an address would be cut off at.
_NAME = re.compile(r"[\w.()-]{1,90}")

JOBS_SINCE = timedelta(days=30)
MAX_JOBS = 1000


@dataclass(frozen=True, slots=True)
class CollectionScope:
    """The scope of a collection.

    Attributes:
        subscription: its id.
        resource_group, workspace: names that narrow the scope; empty for all. A workspace needs its group.
        taken_at: the moment of the snapshot.
        jobs_since: the largest age of jobs.
        max_jobs: the largest number of jobs of a workspace; the newest are read.
    """

    subscription: str
    taken_at: datetime
    resource_group: str = ""
    workspace: str = ""
    jobs_since: timedelta = JOBS_SINCE
    max_jobs: int = MAX_JOBS

    def __post_init__(self) -> None:
        """Check the id and the names, which become parts of addresses.

        Raises:
            UsageError: one of them is invalid.
        """
        if not _SUBSCRIPTION.fullmatch(self.subscription):
            remedy = "`az account list --output table` prints the ids of subscriptions"
            raise UsageError(f"`{self.subscription}` is no id of a subscription", remedy=remedy)
        for what, name in (("resource group", self.resource_group), ("workspace", self.workspace)):
            if name and not _NAME.fullmatch(name):
                raise UsageError(f"`{name}` is no name of a {what}", remedy="give the name alone, not the id")
        if self.workspace and not self.resource_group:
            remedy = "name it with --resource-group"
            raise UsageError(f"the workspace `{self.workspace}` lacks its resource group", remedy=remedy)

    @property
    def root(self) -> str:
        """The id of the subscription."""
        return f"/subscriptions/{self.subscription}"

    @property
    def group(self) -> str:
        """The id of the resource group, else of the subscription."""
        return f"{self.root}/resourceGroups/{self.resource_group}" if self.resource_group else self.root

    @property
    def scope(self) -> str:
        """The id of the scope."""
        return f"{self.group}/providers/{WORKSPACES}/{self.workspace}" if self.workspace else self.group


#: A task; what it returns is done next.
Task = Callable[[], "Iterable[Task]"]
#: How often the caller looks whether it was interrupted, in seconds; some systems do not end a wait for that.
_LOOK = 0.2
#: How often it looks after the deadline until it gives up what has no answer.
_LOOKS_AFTER = 25


class WorkerPool:
    """A number of workers."""

    def __init__(self, size: int, stopped: threading.Event, is_over: Callable[[], bool] = lambda: False) -> None:
        """Use `size` workers, set `stopped` to stop the tasks, and do not wait for tasks once the time `is_over`."""
        self._size = size
        self._stopped = stopped
        self._is_over = is_over

    def do(self, tasks: Iterable[Task], progress: Callable[[int, int], None] | None = None) -> bool:
        """Run all tasks and their further tasks. The first error is raised, and no further tasks are started.

        Args:
            tasks: the first tasks; they can finish in any order.
            progress: called with the numbers of finished and known tasks.

        Returns:
            Whether all tasks were done. After the deadline each ends by itself, unless the other side is silent.
        """
        waiting: SimpleQueue[Task | None] = SimpleQueue()
        done: SimpleQueue[list[Task] | BaseException] = SimpleQueue()
        known = finished = 0
        for task in tasks:
            waiting.put(task)
            known += 1
        workers = [threading.Thread(target=self._work, args=(waiting, done), daemon=True) for _ in range(self._size)]
        for worker in workers:
            worker.start()
        try:
            while finished < known:
                outcome = self._next(done)
                if outcome is None:
                    self._stopped.set()
                    return False
                further = _raise_or_continue(outcome)
                finished += 1
                for task in further:
                    waiting.put(task)
                known += len(further)
                if progress is not None:
                    progress(finished, known)
        except BaseException:
            self._stopped.set()
            raise
        finally:
            for _ in workers:
                waiting.put(None)
        return True

    def _next(self, done: SimpleQueue[list[Task] | BaseException]) -> list[Task] | BaseException | None:
        looks = 0
        while looks < _LOOKS_AFTER:
            try:
                return done.get(timeout=_LOOK)
            except Empty:
                looks += self._is_over()
        return None

    def _work(self, waiting: SimpleQueue[Task | None], done: SimpleQueue[list[Task] | BaseException]) -> None:
        while (task := waiting.get()) is not None and not self._stopped.is_set():
            try:
                done.put(list(task()))
            except BaseException as error:  # it is raised where the crew was called
                done.put(error)


def _raise_or_continue(outcome: list[Task] | BaseException) -> list[Task]:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
