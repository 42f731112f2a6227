"""Attribute findings to a change: find those that it introduces, those on changed resources, and earlier ones."""

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
from policyeng.evaluation.tracing import Differences, Numbers, touched_pairs
from policyeng.facts.ids import fold_id
from policyeng.models import Denial, Finding, Outcome, Resource

#: A position in a list, which changes when an earlier member is removed.
_POSITION = re.compile(r"/\d+(?=/|$)")
_Key = tuple[str, str, str]
#: Checks whether something that the policy of a finding reads differs before and after the change.
Touches = Callable[[Finding], bool]


class Sorted(NamedTuple):
    """Findings after a change that do not pass, and earlier ones that it clears, in their original order.

    Attributes:
        introduced: findings that are new, or worse than before.
        there: earlier findings on changed resources.
        elsewhere: earlier failures and errors on other resources.
        exempted: failures with an exemption that are introduced or on changed resources.
        cleared: failures and errors that no longer exist, as they were before the change.
    """

    introduced: list[Finding]
    there: list[Finding]
    elsewhere: list[Finding]
    exempted: list[Finding]
    cleared: list[Finding]


def sorted_out(before: Iterable[Finding], after: Iterable[Finding], changed: Set[str], touches: Touches) -> Sorted:
    """Compare the findings before and after a change.

    A failure is an earlier one if all of its denials existed before. On changed resources, their actual and expected
    values must be the same, too; elsewhere they can differ, because a change that fixes only a part of a failure does
    not introduce the rest. An unknown finding is an earlier one only if the change touches nothing that the policy
    reads; otherwise it can hide a failure that the change introduces.

    Args:
        before: findings before the change.
        after: findings after the change.
        changed: ids of the changed resources, as `folded_id` returns them.
        touches: called with findings before the change.
    """
    earlier: dict[_Key, list[Finding]] = {}
    for finding in before:
        earlier.setdefault(_key(finding), []).append(finding)
    result = Sorted([], [], [], [], [])
    bad = set[_Key]()
    for finding in after:
        if finding.outcome is Outcome.PASS:
            continue
        key, is_there = _key(finding), fold_id(finding.resource) in changed
        is_old = _is_old(finding, earlier.get(key, ()), touches, is_there=is_there)
        if finding.exemption is not None:
            if is_there or not is_old:
                result.exempted.append(finding)
            continue
        if finding.outcome is not Outcome.UNKNOWN:
            bad.add(key)
        if not is_old or is_there:
            (result.there if is_old else result.introduced).append(finding)
        elif finding.outcome is not Outcome.UNKNOWN:
            result.elsewhere.append(finding)
    result.cleared.extend(
        finding
        for key, findings in earlier.items()
        if key not in bad
        for finding in findings
        if finding.outcome in (Outcome.FAIL, Outcome.ERROR) and finding.exemption is None
    )
    return result


def touches_of(
    findings: Iterable[Finding],
    prepared: EvaluationContext,
    moment: datetime,
    differences: Differences,
    pairs_of: Callable[[Finding], Iterable[Numbers]],
    traced: Mapping[Numbers, Traced] = MappingProxyType({}),
) -> Touches:
    """Return a function that checks whether something that the policy of a finding reads changes.

    Args:
        findings: all findings of the earlier state with which the function can be called.
        prepared: the earlier state.
        moment: the evaluation time, in UTC.
        differences: the differences to the later state.
        pairs_of: returns the pairs of the earlier state to which a finding can belong.
        traced: known reads of pairs of the earlier state.
    """
    untouched: set[_Key] | None = None

    def touches(finding: Finding) -> bool:
        nonlocal untouched
        if not differences.rows:
            return False
        if untouched is None:
            undecided = [one for one in findings if one.outcome in (Outcome.UNKNOWN, Outcome.ERROR)]
            keys = {pair: _key(one) for one in undecided for pair in pairs_of(one)}
            wanted: dict[int, list[int]] = {}
            for number, at in keys:
                wanted.setdefault(number, []).append(at)
            found = touched_pairs(prepared, moment, wanted, differences, traced)
            untouched = {keys[pair] for pair in found} - {keys[pair] for pair in found if found[pair]}
        return _key(finding) not in untouched

    return touches


def reported(subject: Resource) -> tuple[str, str]:
    """Return the type of a subject as findings report it, and its id in lower case."""
    return subject.reported_type, fold_id(subject.reported_id)


def _key(finding: Finding) -> _Key:
    return finding.policy, finding.resource_type, fold_id(finding.resource)


def _is_old(finding: Finding, earlier: Iterable[Finding], touches: Touches, *, is_there: bool) -> bool:
    """Check whether a finding, or a worse one, existed before."""
    alike = [old for old in earlier if old.outcome is finding.outcome and (finding.exemption or not old.exemption)]
    if not alike or finding.outcome is not Outcome.FAIL:
        met = {unknown for old in alike for unknown in old.unknowns}
        return bool(alike) and met.issuperset(finding.unknowns) and not any(map(touches, alike))
    known = Counter(_reason(denial, whole=is_there) for old in alike for denial in old.denials)
    return not Counter(_reason(denial, whole=is_there) for denial in finding.denials) - known


def _reason(denial: Denial, *, whole: bool) -> tuple[str, str, bytes]:
    found = (denial.actual, denial.expected) if whole else None
    return denial.msg, _POSITION.sub("/*", denial.path), orjson.dumps(found, option=orjson.OPT_SORT_KEYS, default=str)
