"""What a change has to do with the findings after it: what it introduces, what sits on it, what was there before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import orjson

from policyeng.engines.tracing import Traced
from policyeng.evaluation import EvaluationContext
from policyeng.evaluation.prepared_snapshot import Resource
from policyeng.evaluation.tracing import Differences, Numbers, touched_pairs
from policyeng.facts.ids import folded_id
from policyeng.models import Denial, Finding, Outcome

#: A position in a list, which moves when something before it goes.
_POSITION = re.compile(r"/\d+(?=/|$)")
_Key = tuple[str, str, str]
#: Whether what the policy of a finding looks at differs before and after the change.
Touches = Callable[[Finding], bool]


class Sorted(NamedTuple):
    """Findings after a change that are not good, and those of before that are good now; sorted as they came.

    Attributes:
        introduced: those that were not there before, or not as bad.
        there: others, which were there before, on what is changed.
        elsewhere: other failures and errors, which were there before, elsewhere.
        exempted: failures that an exemption accepts, introduced or on what is changed.
        cleared: failures and errors of before that are none any more, as they were.
    """

    introduced: list[Finding]
    there: list[Finding]
    elsewhere: list[Finding]
    exempted: list[Finding]
    cleared: list[Finding]


def sorted_out(before: Iterable[Finding], after: Iterable[Finding], changed: Set[str], touches: Touches) -> Sorted:
    """Compare the findings before and after a change.

    On what is changed a failure is an old one if all of its denials were there with what they found; elsewhere also if
    they found something else, because a failure that is still there is not the doing of who mends a part of it. What
    cannot be decided is an old one only where the change touches nothing that the policy looks at: else it may hide a
    failure that the change introduces.

    Args:
        before: of the state before the change.
        after: of the state after it.
        changed: ids of what is changed, as `folded_id` gives them.
        touches: is asked of findings before the change.
    """
    earlier: dict[_Key, list[Finding]] = {}
    for finding in before:
        earlier.setdefault(_key(finding), []).append(finding)
    said = Sorted([], [], [], [], [])
    bad = set[_Key]()
    for finding in after:
        if finding.outcome is Outcome.PASS:
            continue
        key, is_there = _key(finding), folded_id(finding.resource) in changed
        is_old = _is_old(finding, earlier.get(key, ()), touches, is_there=is_there)
        if finding.exemption is not None:
            if is_there or not is_old:
                said.exempted.append(finding)
            continue
        if finding.outcome is not Outcome.UNKNOWN:
            bad.add(key)
        if not is_old or is_there:
            (said.there if is_old else said.introduced).append(finding)
        elif finding.outcome is not Outcome.UNKNOWN:
            said.elsewhere.append(finding)
    said.cleared.extend(
        finding
        for key, findings in earlier.items()
        if key not in bad
        for finding in findings
        if finding.outcome in (Outcome.FAIL, Outcome.ERROR) and finding.exemption is None
    )
    return said


def touches_of(
    findings: Iterable[Finding],
    prepared: EvaluationContext,
    moment: datetime,
    differences: Differences,
    pairs_of: Callable[[Finding], Iterable[Numbers]],
    traced: Mapping[Numbers, Traced] = MappingProxyType({}),
) -> Touches:
    """Return a function that decides whether what the policy of a finding reads is changed.

    Args:
        findings: of the earlier state, all that it may be asked about.
        prepared: the earlier state.
        moment: the evaluation clock, in UTC.
        differences: of the later state.
        pairs_of: finds the pairs of the earlier state that a finding may be of.
        traced: pairs of the earlier state that need not be traced again.
    """
    untouched: set[_Key] | None = None

    def touches(finding: Finding) -> bool:
        nonlocal untouched
        if untouched is None:
            undecided = [one for one in findings if one.outcome in (Outcome.UNKNOWN, Outcome.ERROR)]
            keys = {pair: _key(one) for one in undecided for pair in pairs_of(one)}
            wanted: dict[int, list[int]] = {}
            for number, at in keys:
                wanted.setdefault(number, []).append(at)
            found = touched_pairs(prepared, moment, wanted, differences, traced)
            untouched = {keys[pair] for pair in found} - {keys[pair] for pair in found if found[pair]}
        return bool(differences.rows) and _key(finding) not in untouched

    return touches


def reported(subject: Resource) -> tuple[str, str]:
    """Return the type of a subject as findings have it, and its id without case."""
    return subject.reported_type, folded_id(subject.reported_id)


def _key(finding: Finding) -> _Key:
    return finding.policy, finding.resource_type, folded_id(finding.resource)


def _is_old(finding: Finding, earlier: Iterable[Finding], touches: Touches, *, is_there: bool) -> bool:
    """Return whether a finding, or a worse one, was there before."""
    alike = [old for old in earlier if old.outcome is finding.outcome and (finding.exemption or not old.exemption)]
    if not alike or finding.outcome is not Outcome.FAIL:
        met = {unknown for old in alike for unknown in old.unknowns}
        return bool(alike) and met.issuperset(finding.unknowns) and not any(map(touches, alike))
    known = Counter(_reason(denial, whole=is_there) for old in alike for denial in old.denials)
    return not Counter(_reason(denial, whole=is_there) for denial in finding.denials) - known


def _reason(denial: Denial, *, whole: bool) -> tuple[str, str, bytes]:
    found = (denial.actual, denial.expected) if whole else None
    return denial.msg, _POSITION.sub("/*", denial.path), orjson.dumps(found, option=orjson.OPT_SORT_KEYS, default=str)
