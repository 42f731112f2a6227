"""The cases of a policy as scenes: edits that can be combined with those of other policies in one snapshot."""

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
from policyeng.parsing.json_pointer import merged
from policyeng.testing.observed_reads import observe


@dataclass(frozen=True, slots=True)
class Scene:
    """One case of a policy as edits of baselines.

    Attributes:
        verdict: the expected outcome.
        edits: merge patches, by the stem of the baseline.
        edited: the baselines after these patches, by the same stems.
        removed: the stems of baselines that the case leaves out.
        needs: the stems of baselines that the case depends on.
        stated: the statements that replace those of the baselines, by kind; only the kinds that the case states.
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
    """The references between baselines: what is left out of a snapshot must not be referenced by the rest."""

    def __init__(self, baselines: Baselines) -> None:
        self._ids = {stem: lowered(str(one.get("id"))).encode() for stem, one in baselines.resources.items()}
        self._names = {stem: _as_value(identity.rpartition(b"/")[2]) for stem, identity in self._ids.items()}
        self._named = {stem: self.named(resource) for stem, resource in baselines.resources.items()}

    def named(self, document: JsonObject) -> frozenset[str]:
        """Return the stems of the baselines whose ids occur in a document."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, identity in self._ids.items() if identity in text)

    def called(self, document: JsonObject) -> frozenset[str]:
        """Return the stems of the baselines that a document refers to by name, such as `azureml:cluster`."""
        text = orjson.dumps(document).lower()
        return frozenset(stem for stem, name in self._names.items() if name.search(text))

    def around(self, stems: Iterable[str]) -> frozenset[str]:
        """Return some baselines with all that they refer to, directly or not."""
        waiting, found = set(stems), set[str]()
        while waiting:
            stem = waiting.pop()
            found.add(stem)
            waiting |= self._named.get(stem, frozenset()) - found
        return frozenset(found)

    def of_ids(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield the stems of the baselines with some lower-case ids."""
        wanted = {identity.encode() for identity in ids}
        return (stem for stem, identity in self._ids.items() if identity in wanted)


def _as_value(name: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a name as a complete JSON string, with an optional prefix as in references."""
    return re.compile(rb'"(?:[^":]*:)?' + re.escape(name) + rb'"(?!\s*:)')


def list_scenes(bundle: Bundle, policy: Policy, baselines: Baselines, links: Links) -> Iterator[Scene]:
    """Yield every case of a policy as a scene; none if it has no cases.

    Raises:
        BundleError: its `cases.yaml` is not well formed.
    """
    file, read = read_cases(policy), observe(bundle, policy).resources
    for verdict, name, case in file.named() if file else ():
        stems = set(links.of_ids(read.get(name, ())))
        yield _build_scene(stems, verdict, case, baselines, links, f"{policy.cases}: {name}")


def _build_scene(
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
    """Return a model as in a native snapshot, without the fields that are not set."""
    return entry.model_dump(mode="json", by_alias=True, exclude_none=True)
