"""The cases of a policy as scenes: edits that can be played together with those of others in one estate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.header import Verdict
from policyeng.models import JsonObject, Model, lowered
from policyeng.verify.cases import DEFAULT_AS_OF, Baselines, Case, estate, merged, read_cases

#: What a case can state beside resources.
STATED = ("approvals", "workloads", "quotas", "metrics", "principals")


@dataclass(frozen=True, slots=True)
class Scene:
    """One case of a policy, ready to be played.

    Attributes:
        verdict: what the policy must say of it.
        edits: merge patches by the stem of the baseline.
        edited: by the same stems, the baselines after these patches.
        removed: the stems of baselines that it leaves out.
        needs: the stems of baselines without which it would be another one.
        stated: by kind, what it states in place of the baselines' own; only the kinds that it states.
    """

    verdict: Verdict
    edits: Mapping[str, JsonObject]
    edited: Mapping[str, JsonObject]
    removed: frozenset[str]
    needs: frozenset[str]
    stated: Mapping[str, list[JsonObject]]
    parameters: JsonObject
    as_of: datetime


class Links:
    """Which baselines name which others by their ids: what is left out of an estate must not be missed in the rest."""

    def __init__(self, baselines: Baselines) -> None:
        self._ids = {stem: lowered(str(one.get("id"))).encode() for stem, one in baselines.resources.items()}
        self._types = {stem: lowered(str(one.get("type"))) for stem, one in baselines.resources.items()}
        self._named = {stem: self._in(resource) for stem, resource in baselines.resources.items()}

    def needed(self, stems: Iterable[str], resources: Iterable[JsonObject], policy: Policy) -> frozenset[str]:
        """Some baselines, what they and some resources name, and all of a type that the policy consults."""
        consulted = {lowered(entry.type) for entry in policy.header.consults}
        waiting = {*stems, *(stem for stem, kind in self._types.items() if kind in consulted)}
        waiting.update(stem for resource in resources for stem in self._in(resource))
        found: set[str] = set()
        while waiting:
            stem = waiting.pop()
            found.add(stem)
            waiting |= self._named.get(stem, frozenset()) - found
        return frozenset(found)

    def _in(self, resource: JsonObject) -> frozenset[str]:
        text = orjson.dumps(resource).lower()
        return frozenset(stem for stem, identity in self._ids.items() if identity in text)


def scenes_of(policy: Policy, baselines: Baselines, links: Links) -> Iterator[Scene]:
    """Every case of a policy; none of one without cases.

    Raises:
        BundleError: its `cases.yaml` is not well formed.
    """
    file = read_cases(policy)
    for verdict, name, case in file.named() if file else ():
        yield _scene(policy, verdict, case, baselines, links, f"{policy.cases}: {name}")


def _scene(policy: Policy, verdict: Verdict, case: Case, baselines: Baselines, links: Links, place: str) -> Scene:
    edits = dict(case.with_)
    if case.baseline is not None:
        edits[case.baseline] = merged(edits.get(case.baseline, {}), case.patch, keep_null=True)
    touched = {stem: one for stem, one in baselines.resources.items() if stem in edits or stem in case.remove}
    snapshot = estate(Baselines(touched), case, place)
    edited = dict(zip(sorted(touched.keys() - set(case.remove)), snapshot.resources, strict=True))
    entries = {kind: getattr(snapshot, kind) for kind in STATED if getattr(case, kind) is not None}
    return Scene(
        verdict=verdict,
        edits=edits,
        edited=edited,
        removed=frozenset(case.remove),
        needs=links.needed(edited, edited.values(), policy) - set(case.remove),
        stated={kind: [_plain(entry) for entry in found] for kind, found in entries.items()},
        parameters=case.parameters,
        as_of=case.as_of or DEFAULT_AS_OF,
    )


def _plain(entry: Model) -> JsonObject:
    return entry.model_dump(mode="json", by_alias=True, exclude_none=True)
