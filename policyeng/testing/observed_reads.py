"""The reads of policies that are recorded while their cases are evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import orjson

from policyeng import cache
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, Baselines, baselines_of, estate, read_cases
from policyeng.bundle.header import WORKSPACE
from policyeng.errors import PolicyengError
from policyeng.evaluation import EvaluationContext, prepare
from policyeng.evaluation.matching import selectors_of
from policyeng.evaluation.pointers import values_at
from policyeng.evaluation.tracing import name_of, trace_pairs
from policyeng.models import Finding, JsonObject, Snapshot, lowered
from policyeng.rego.tracing import RecordedReads

#: Fields that every resource has, so they cannot be absent.
_ALWAYS = frozenset(("/id", "/type", "/name"))
_INDEX = re.compile(r"/[0-9]+(?=/|$)")
_OWN, _ABOVE = "own", "workspace"
_STATED = re.compile(r"/snapshot/(approvals|quotas|metrics|principals|evidence)(?=/|$)")


class ObservedReads(NamedTuple):
    """The fields that a policy reads; `*` in a pointer is any member of a list.

    Attributes:
        own: JSON Pointers into the evaluated resource.
        workspace: JSON Pointers into its workspace.
        others: JSON Pointers into other resources by their lower-case types, workloads and approvals among them;
            and statements about the organization, such as `quotas`, without pointers.
        resources: the lower-case ids of the resources that each case reads, by case name.
        is_whole: whether every evaluation could be recorded.
    """

    own: Sequence[str]
    workspace: Sequence[str]
    others: Mapping[str, Sequence[str]]
    resources: Mapping[str, Sequence[str]]
    is_whole: bool = True

    @property
    def pointers(self) -> tuple[str, ...]:
        """The pointers into the resource, and those into its workspace with the prefix `workspace:`."""
        return (*self.own, *(f"{WORKSPACE}{pointer}" for pointer in self.workspace))


#: The reads of a policy without cases.
UNOBSERVED = ObservedReads((), (), {}, {})


def observe(bundle: Bundle, policy: Policy) -> ObservedReads:
    """Evaluate the cases of a policy and return what they read; the fields of its `where` count as read.

    Raises:
        BundleError: its `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    return _observe(_PolicyKey(bundle, policy))


class _PolicyKey:
    """A policy as a cache key: its id and the digest of its bundle."""

    def __init__(self, bundle: Bundle, policy: Policy) -> None:
        self.bundle, self.policy = bundle, policy

    def __hash__(self) -> int:
        return hash((self.bundle.digest, self.policy.id))

    def __eq__(self, other: object) -> bool:
        mine = self.bundle.digest, self.policy.id, self.policy.header
        return isinstance(other, _PolicyKey) and mine == (other.bundle.digest, other.policy.id, other.policy.header)


@lru_cache(maxsize=1024)
def _observe(key: _PolicyKey) -> ObservedReads:
    policy, baselines = key.policy, baselines_of(key.bundle)
    known = orjson.dumps([policy.header.model_dump(mode="json"), baselines.resources, baselines.stated], default=str)
    cases = policy.cases.read_text(encoding="utf-8") if policy.cases else ""
    entry = cache.key_of("observed", cache.package_digest(), key.bundle.digest, known.decode(), policy.id, cases)
    if stored := cache.load(entry):
        return ObservedReads(**orjson.loads(stored[0]))
    observed = _observe_cases(key.bundle, policy, baselines)
    cache.store(entry, [orjson.dumps(observed._asdict())])
    return observed


def _observe_cases(bundle: Bundle, policy: Policy, baselines: Baselines) -> ObservedReads:
    _ = bundle.reaches  # `only` takes them over, and finding them takes longer than the cases of a policy
    read_collector, resources, alone = _ReadCollector(policy), dict[str, list[str]](), bundle.only([policy])
    file = read_cases(policy)
    for _, name, case in file.named() if file else ():
        snapshot = estate(baselines, case, f"{policy.cases}: {name}")
        try:
            prepared = prepare(alone, snapshot, {policy.id: case.parameters})
        except PolicyengError:  # the case reports what is wrong
            continue
        resources[name] = sorted(read_collector.read(prepared, case.as_of or DEFAULT_AS_OF))
    return read_collector.observed._replace(resources=resources)


def observe_finding(
    bundle: Bundle, snapshot: Snapshot, finding: Finding, as_of: datetime, parameters: Mapping[str, JsonObject]
) -> ObservedReads:
    """Evaluate the resource of a finding again and return what the policy reads.

    Args:
        bundle: the bundle with the policy of the finding.
        snapshot: the evaluated snapshot.
        finding: a finding about the snapshot.
        as_of: the evaluation clock.
        parameters: values that replace the defaults, by policy id.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema.
        EngineError: the bundle does not compile.
    """
    [policy] = (one for one in bundle.policies if one.id == finding.policy)
    given = {policy.id: parameters[policy.id]} if policy.id in parameters else {}
    prepared = prepare(bundle.only([policy]), snapshot, given)
    read_collector = _ReadCollector(policy)
    read_collector.read(
        prepared.only(lambda _, subject: lowered(subject.reported_id) == lowered(finding.resource)), as_of
    )
    return read_collector.observed


class _ReadCollector:
    """A collector of what a policy reads, by place: the resource, its workspace, or the type of another resource."""

    def __init__(self, policy: Policy) -> None:
        narrowed = {pointer for selector in selectors_of(policy.header) for pointer, _ in selector.where}
        #: Whether the keys of an object are read, by place and pointer.
        self._pointers: dict[str, dict[str, bool]] = {_OWN: dict.fromkeys(narrowed, False), _ABOVE: {}}
        self._is_whole = True

    @property
    def observed(self) -> ObservedReads:
        """The reads so far."""
        others = {kind: _reduce(paths) for kind, paths in sorted(self._pointers.items()) if kind not in (_OWN, _ABOVE)}
        return ObservedReads(_reduce(self._pointers[_OWN]), _reduce(self._pointers[_ABOVE]), others, {}, self._is_whole)

    def read(self, prepared: EvaluationContext, as_of: datetime) -> set[str]:
        """Evaluate, add the reads, and return the lower-case ids of the resources that are read."""
        subjects, read_ids = prepared.estate.subjects, set[str]()
        named = {name_of(subject): subject for subject in subjects}
        moment = as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)
        for pair, (_, reads, _) in trace_pairs(prepared, prepared.work(moment)):
            own = name_of(subjects[pair.subject])
            above = name_of(subjects[pair.workspace]) if pair.workspace >= 0 else ""
            self._is_whole &= reads is not None
            for read in reads or ():
                if read.document == "input":
                    if stated := _STATED.match(read.pointer):
                        self._pointers.setdefault(stated[1], {})
                    continue
                document = named[read.document]
                read_ids.add(lowered(document.reported_id))
                near = _OWN if read.document == own else _ABOVE if read.document == above else ""
                pointers = self._pointers.setdefault(near or document.target_type, {})
                for pointer, is_open in _generalize_read(read, document.document):
                    pointers[pointer] = pointers.get(pointer, False) or is_open
        return read_ids


def _generalize_read(read: RecordedReads, document: JsonObject) -> Iterator[tuple[str, bool]]:
    """Yield a read with `*` for positions in lists, and whether it reads all keys of an object."""
    is_open = read.kind != "value" and not any(isinstance(value, list) for value in values_at(document, read.pointer))
    if read.pointer not in _ALWAYS and read.pointer:
        yield _INDEX.sub("/*", read.pointer), is_open


def _reduce(pointers: Mapping[str, bool]) -> list[str]:
    """Drop pointers that only lead to others, and those below an object of which all keys are read."""
    opened = tuple(f"{pointer}/" for pointer, is_open in pointers.items() if is_open)
    minimal = sorted(pointer for pointer in pointers if not (opened and pointer.startswith(opened)))
    # Both a list and a field of its members can be absent.
    leads = {one for one in minimal if any(other.startswith(f"{one}/") for other in minimal)}
    return [one for one in minimal if one not in leads or any(other.startswith(f"{one}/*") for other in minimal)]
