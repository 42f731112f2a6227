"""The cases of a policy as scenes: edits that can be played together with those of others in one estate."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED, Baselines, Case, estate, read_cases
from policyeng.bundle.header import Verdict
from policyeng.models import JsonObject, Model, lowered
from policyeng.parsing.merge_patch import merged
from policyeng.testing.observed_reads import observe


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
    """Which baselines name which others: what is left out of an estate must not be missed in the rest."""

    def __init__(self, baselines: Baselines) -> None:
        self._ids = {stem: lowered(str(one.get("id"))).encode() for stem, one in baselines.resources.items()}
        self._names = {stem: _as_value(identity.rpartition(b"/")[2]) for stem, identity in self._ids.items()}
        self._named = {stem: self.named(resource) for stem, resource in baselines.resources.items()}

    def named(self, document: JsonObject) -> frozenset[str]:
        """The stems of the baselines whose ids stand in a document."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, identity in self._ids.items() if identity in text)

    def called(self, document: JsonObject) -> frozenset[str]:
        """The stems of those that a document calls by their names alone, such as `azureml:cluster`, or means to."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, name in self._names.items() if name.search(text))

    def around(self, stems: Iterable[str]) -> frozenset[str]:
        """Some baselines, with what they name, and what that names."""
        waiting, found = set(stems), set[str]()
        while waiting:
            stem = waiting.pop()
            found.add(stem)
            waiting |= self._named.get(stem, frozenset()) - found
        return frozenset(found)

    def of_ids(self, ids: Iterable[str]) -> Iterator[str]:
        """The stems of the baselines with some lower-case ids."""
        wanted = {identity.encode() for identity in ids}
        return (stem for stem, identity in self._ids.items() if identity in wanted)


def _as_value(name: bytes) -> re.Pattern[bytes]:
    """A name where it is a whole value of a JSON text, with a prefix as references have one."""
    return re.compile(rb'"(?:[^":]*:)?' + re.escape(name) + rb'"(?!\s*:)')


def scenes_of(bundle: Bundle, policy: Policy, baselines: Baselines, links: Links) -> Iterator[Scene]:
    """Every case of a policy; none of one without cases.

    Raises:
        BundleError: its `cases.yaml` is not well formed.
    """
    file, read = read_cases(policy), observe(bundle, policy).resources
    for verdict, name, case in file.named() if file else ():
        stems = set(links.of_ids(read.get(name, ())))
        yield _scene(stems, verdict, case, baselines, links, f"{policy.cases}: {name}")


def _scene(
    read: Collection[str], verdict: Verdict, case: Case, baselines: Baselines, links: Links, place: str
) -> Scene:
    edits = dict(case.with_)
    if case.baseline is not None:
        edits[case.baseline] = merged(edits.get(case.baseline, {}), case.patch, keep_null=True)
    touched = {stem: one for stem, one in baselines.resources.items() if stem in edits or stem in case.remove}
    snapshot = estate(Baselines(touched), case, place)
    edited = dict(zip(sorted(touched.keys() - set(case.remove)), snapshot.resources, strict=True))
    given = [kind for kind in STATED if getattr(case, kind) is not None]
    stated = {kind: [plain(entry) for entry in getattr(snapshot, kind)] for kind in given}
    said = [*edits.values(), *(entry for entries in stated.values() for entry in entries)]
    stems = {*edited, *read, *(stem for document in said for stem in links.called(document))}
    stems |= {stem for document in (*edited.values(), *said) for stem in links.named(document)}
    return Scene(
        verdict=verdict,
        edits=edits,
        edited=edited,
        removed=frozenset(case.remove),
        needs=links.around(stems) - set(case.remove),
        stated=stated,
        parameters=case.parameters,
        as_of=case.as_of or DEFAULT_AS_OF,
    )


def plain(entry: Model) -> JsonObject:
    """What a model says, as a native snapshot writes it: without what it leaves open."""
    return entry.model_dump(mode="json", by_alias=True, exclude_none=True)
