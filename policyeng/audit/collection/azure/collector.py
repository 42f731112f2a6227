"""The requests of a collection in order: the scope, its workspaces, and the resources that these refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from policyeng.audit.collection.azure import jobs, monitoring, quotas, references
from policyeng.audit.collection.azure.client import Client, Loss, pages
from policyeng.audit.collection.azure.resource_types import (
    ADVICE,
    AT_SCOPE,
    BUDGETS,
    COMPUTES,
    DEFINITIONS,
    EVERYWHERE,
    IN_GROUP,
    IN_SUBSCRIPTION,
    IN_WORKSPACE,
    WORKSPACES,
    Listing,
    below_workspaces,
    version_of,
)
from policyeng.audit.collection.azure.scope import CollectionScope
from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder
from policyeng.audit.collection.azure.workers import Task, WorkerPool
from policyeng.errors import InputError
from policyeng.facts.ids import scopes_of, workspace_of
from policyeng.facts.words import get_inside
from policyeng.models import JsonObject, lowered

#: Called with how many questions are answered, how many are known, and how many resources were read.
Progress = Callable[[int, int, int], None]
_READER = "give the identity that asks the role Reader there"


class CollectionRun:
    """One collection of a scope."""

    def __init__(self, client: Client, wanted: CollectionScope) -> None:
        self._client = client
        self._wanted = wanted
        self.gathered = SnapshotBuilder()

    def make(self, crew: WorkerPool, progress: Progress | None = None) -> SnapshotBuilder:
        """Read everything.

        Raises:
            InputError: the scope does not exist, nothing in it can be read, or there is no token.
        """
        known = self.gathered

        def report(done: int, all_: int) -> None:
            if progress is not None:
                progress(done, all_, len(known.resources))

        crew.do(self._at_scope(), report)
        self._require_something()
        while tasks := list(references.tasks(self._client, known, self._in_workspace, self._list)):
            crew.do(tasks, report)
        references.note_incomplete_clusters(known, self._wanted.root)
        crew.do(self._beside(), report)
        return known

    def _at_scope(self) -> Iterator[Task]:
        wanted = self._wanted
        yield self._workspaces
        for listing in (*AT_SCOPE, *(() if wanted.workspace else IN_GROUP)):
            yield partial(self._list, listing, wanted.scope)
        for listing in IN_SUBSCRIPTION:
            if listing not in AT_SCOPE or wanted.scope != wanted.root:
                yield partial(self._list, listing, wanted.root)
        yield partial(self._list, EVERYWHERE, "")
        yield from self._budgets(wanted.root)

    def _beside(self) -> Iterator[Task]:
        """Return the requests that follow from the resources found."""
        known = self.gathered
        above = {scope for one in known.of_type(WORKSPACES) for scope in scopes_of(one["id"])[:2]}
        for home in sorted(above - {lowered(self._wanted.root)}):
            yield from self._budgets(home)
        yield self._advice
        yield from quotas.tasks(self._client, known, self._wanted)
        yield from monitoring.tasks(self._client, known, self._wanted)

    def _budgets(self, home: str) -> Iterator[Task]:
        for kind in BUDGETS:
            yield partial(self._list, Listing(kind, f"/providers/{kind}"), home)

    def _workspaces(self) -> Iterable[Task]:
        wanted = self._wanted
        self.gathered.ask(WORKSPACES, wanted.scope)
        if wanted.workspace:
            answer = self._client.get(wanted.scope, {"api-version": version_of(WORKSPACES)})
            found: list[JsonObject | Loss] = [answer]
        else:
            found = list(self._entries(Listing(WORKSPACES, f"/providers/{WORKSPACES}"), wanted.group))
        for entry in found:
            if isinstance(entry, Loss):
                self._without_workspaces(entry)
            elif workspace := self.gathered.take(entry, WORKSPACES, wanted.scope):
                yield from self._in_workspace(workspace["id"])

    def _without_workspaces(self, loss: Loss) -> None:
        """Note what is unknown without a list of workspaces."""
        if loss.is_absent and not loss.is_unused:
            message, remedy = "there is no such scope, or the identity that asks must not know of it", _READER
            raise InputError(message, place=(self._wanted.scope,), remedy=remedy)
        if not loss.is_unused:
            for kind in (WORKSPACES, *below_workspaces()):
                self.gathered.lack(kind, self._wanted.scope, loss)

    def _in_workspace(self, workspace: str) -> Iterator[Task]:
        for listing in IN_WORKSPACE:
            yield partial(self._list, listing, workspace)
        yield partial(jobs.read, self._client, self.gathered, self._wanted, workspace)

    def _list(self, listing: Listing, home: str) -> Iterable[Task]:
        """Read one list, and return the tasks for the lists of its entries."""
        # All roles that can be assigned at a scope are listed there, with ids of the subscription.
        self.gathered.ask(listing.kind, self._wanted.root if listing.kind == DEFINITIONS else home or "/")
        for entry in self._entries(listing, home):
            if isinstance(entry, Loss):
                self._lack(listing, home, entry)
                continue
            resource = self.gathered.take(entry, listing.kind, home or "/")
            if resource is None:
                continue
            for below in listing.below:
                yield partial(self._list, below, resource["id"])
            if listing.kind == COMPUTES and not isinstance(get_inside(resource, "properties", "properties"), dict):
                yield partial(self._again, resource)

    def _lack(self, listing: Listing, home: str, loss: Loss) -> None:
        if loss.is_absent or (listing.may_lack and loss.is_unknown):
            return
        where = (workspace_of(home) if listing.newest else home) or "/"  # one line for all models of a workspace
        for kind in (listing.kind, *(below.kind for below in listing.below if below.kind.startswith(listing.kind))):
            self.gathered.lack(kind, where, loss)

    def _entries(self, listing: Listing, home: str) -> Iterator[JsonObject | Loss]:
        query = {"api-version": version_of(listing.kind), **listing.query}
        if listing.newest:
            query |= {"$top": str(listing.newest), "$orderBy": "createdtime desc"}
        for number, page in enumerate(pages(self._client, f"{home}{listing.path}", query)):
            if isinstance(page, Loss):
                yield page
            elif listing.newest and number:
                reason = f"only the newest {listing.newest} of each were read"
                self.gathered.leave(listing.kind, workspace_of(home) or home, reason)
                return
            else:
                yield from page.entries  # type: ignore[misc]  # `take` refuses those that are no objects

    def _again(self, listed: JsonObject) -> Iterable[Task]:
        """Read a compute again, because lists omit its inner properties."""
        answer = self._client.get(listed["id"], {"api-version": version_of(COMPUTES)})
        if isinstance(answer, Loss):
            self.gathered.lack(COMPUTES, listed["id"], answer)
        else:
            self.gathered.replace(answer)
        return ()

    def _advice(self) -> Iterable[Task]:
        """Read the advice on the collected resources; Azure lists it for the subscription."""
        wanted, known = self._wanted, frozenset(self.gathered.resources)
        for entry in self._entries(Listing(ADVICE, f"/providers/{ADVICE}"), wanted.root):
            if isinstance(entry, Loss):
                self._lack(Listing(ADVICE, ""), wanted.scope, entry)
            elif lowered(str(get_inside(entry, "id"))).partition(f"/providers/{lowered(ADVICE)}")[0] in known:
                self.gathered.take(entry, ADVICE, wanted.scope)
        return ()

    def _require_something(self) -> None:
        """Check that something could be read, because an empty snapshot would look like an empty scope.

        Raises:
            InputError: nothing could be read.
        """
        known = self.gathered
        read = any(lowered(key).startswith(lowered(self._wanted.root)) for key in known.resources)
        if not read and known.missing:
            first = known.missing[0].partition(": ")[2]
            message = f"nothing of it can be read: {first}"
            remedy = _READER if known.denied else "try again later"
            raise InputError(message, place=(self._wanted.scope,), remedy=remedy)
