"""The causes of a flip in the form in which they are reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice

import orjson

from policyeng.audit.comparing.items import Item
from policyeng.audit.comparing.nouns import Became, Cause, Kind, PathChange
from policyeng.audit.comparing.paths import edits, shown
from policyeng.audit.comparing.states import Key, State
from policyeng.audit.comparing.worlds import Factor, Worlds
from policyeng.engines import engine_version
from policyeng.report.wording import rfc3339

#: No more places of one item are named than these; whoever wants them all looks at the snapshots.
_MOST_PATHS = 50


def told(worlds: Worlds, key: Key, factors: Iterable[Factor]) -> Iterator[Cause]:
    """Each thing that is undone once, with the places of it that are."""
    places: dict[Factor, list[str]] = {}
    for factor in sorted(factors, key=lambda one: (list(Kind).index(one.kind), one.key, one.path or "")):
        found = places.setdefault(factor._replace(path=None), [])
        if factor.path is not None:
            found.append(factor.path)
    for factor, paths in places.items():
        yield _told(worlds, key, factor, paths)


def _told(worlds: Worlds, key: Key, factor: Factor, paths: list[str]) -> Cause:
    before, after = worlds.before, worlds.after
    if factor.kind is Kind.POLICY:
        return _policy(before, after, key.policy)
    if factor.kind is Kind.PARAMETERS:
        given = edits(before.parameters.get(key.policy, {}), after.parameters.get(key.policy, {}))
        return Cause(kind=factor.kind, change="changed", subject=key.policy, paths=tuple(map(shown, given)))
    if factor.kind is Kind.EXEMPTION:
        return _exemption(worlds, factor.key)
    if factor.kind is Kind.ENGINE:
        versions = [f"{state.engine} {engine_version(state.engine, state.opa)}" for state in (before, after)]
        return Cause(kind=factor.kind, change="changed", before=versions[0], after=versions[1])
    if factor.kind is Kind.CLOCK:
        return Cause(kind=factor.kind, change="changed", before=rfc3339(before.as_of), after=rfc3339(after.as_of))
    return _item(worlds, factor.item, paths)


def _policy(before: State, after: State, policy_id: str) -> Cause:
    """A policy that is another one, or what it shares with others, with the places of the data that differ."""
    digests = [digest_of(state, policy_id) for state in (before, after)]
    if digests[0] != digests[1]:
        change = _change(*digests)
        return Cause(kind=Kind.POLICY, change=change, subject=policy_id, before=digests[0], after=digests[1])
    paths = islice(map(shown, edits(before.bundle.data, after.bundle.data)), _MOST_PATHS)
    digests = [state.bundle.digest for state in (before, after)]
    name = after.bundle.name
    return Cause(
        kind=Kind.LIBRARY, change="changed", subject=name, paths=tuple(paths), before=digests[0], after=digests[1]
    )


def _item(worlds: Worlds, item: Item, paths: list[str]) -> Cause:
    """What stands in the snapshot, with the places that count; all where it does not come down to some."""
    before, after = (side.get(item, ()) for side in worlds.items)
    name = (after or before)[0].name
    if not before or not after:
        return Cause(kind=item.kind, change=_change(before, after), subject=name)
    known = edits(before[0].document, after[0].document)
    changes = [shown(edit) for edit in known if not paths or edit.path in paths]
    if (before[0].unreadable, before[0].carried) != (after[0].unreadable, after[0].carried):
        changes += _readable(before[0].unreadable, after[0].unreadable)
    return Cause(kind=item.kind, change="changed", subject=name, paths=tuple(changes[:_MOST_PATHS]))


def _readable(before: Iterable[str], after: Iterable[str]) -> Iterator[PathChange]:
    """Where one side can be read and the other cannot."""
    for path in sorted({*before} ^ {*after}):
        sides = ["cannot be read" if path in side else "can be read" for side in (before, after)]
        yield PathChange(path=path, change="changed", before=sides[0], after=sides[1])


def _exemption(worlds: Worlds, name: str) -> Cause:
    before, after = (side.get(name) for side in worlds.in_force)
    ends = [rfc3339(one.expires_at) if one else "" for one in (before, after)]
    change: Became = "changed"
    if before is None:
        change = "began"
    elif after is None:
        change = "lapsed" if _has_lapsed(worlds, name) else "ended"
    return Cause(kind=Kind.EXEMPTION, change=change, subject=name, before=ends[0], after=ends[1])


def _has_lapsed(worlds: Worlds, name: str) -> bool:
    """Whether an exemption is over by its own time; a store keeps only those in force, so the earlier one may tell."""
    stated = {one.id: one for one in (*worlds.before.exemptions, *worlds.after.exemptions)}
    return stated[name].expires_at <= worlds.after.as_of


def _change(before: object, after: object) -> Became:
    return "came" if not before else "went" if not after else "changed"


def digest_of(state: State, policy_id: str) -> str:
    """SHA-256 over a policy with its header; empty where it is not in force."""
    policy = next((policy for policy in state.bundle.policies if policy.id == policy_id), None)
    if policy is None:
        return ""
    digest = hashlib.sha256(orjson.dumps(policy.header.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    if policy.python is not None:
        digest.update(policy.python.text)
    for path, source in state.bundle.modules:
        if path == policy.file:
            digest.update(source.encode())
    return digest.hexdigest()
