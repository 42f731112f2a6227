"""Which inspected places the cases of a policy show to decide something.

What cannot be read there must make the policy unknown, so its header has to inspect it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.evaluation.pointers import overlap
from policyeng.facts.ids import workspace_of
from policyeng.models import JsonObject, lowered
from policyeng.strict.json_pointer import escaped
from policyeng.verify.case_runs import Prepared
from policyeng.verify.cases import Baselines, Case, estate


def still_read(header: PolicyHeader, pointer: str) -> bool:
    """Whether a header says that the policy looks at a place."""
    narrowed = (place for judged in header.judges for place in judged.where)
    return any(overlap(one, pointer) for one in (*header.inspects, *narrowed))


def deciding_case(
    pointer: str,
    header: PolicyHeader,
    cases: Sequence[Prepared],
    baselines: Baselines,
    holds: Callable[[Prepared], bool],
) -> str:
    """The case that shows that what stands at an inspected pointer decides; empty if there is none.

    A denial of it does, a field whose absence is no pass, and an edit without which the case has another outcome.

    Args:
        pointer: a pointer of `inspects`.
        header: that of the policy.
        cases: those of the policy, which hold.
        baselines: the compliant estate that they edit.
        holds: whether a case has the outcome that it must.
    """
    for prepared in cases:
        if prepared.expected == "fail" and prepared.case.path is not None and overlap(pointer, prepared.case.path):
            return prepared.name
    if header.absent(pointer) != "pass":
        return f"absent {pointer}"
    for prepared in cases:
        for less in _without(prepared, pointer, baselines):
            if not holds(less):
                return prepared.name
    return ""


def _without(prepared: Prepared, pointer: str, baselines: Baselines) -> Iterator[Prepared]:
    """The case without each of its edits of what a pointer names."""
    case = prepared.case
    if pointer.startswith(WORKSPACE):
        stem = _workspace_stem(prepared.identity, baselines)
        for place, keys in _places(case.with_.get(stem, {}), WORKSPACE):
            if overlap(pointer, place):
                edits = {**case.with_, stem: _less(case.with_[stem], keys)}
                yield _edited(prepared, case.model_copy(update={"with_": edits}), baselines)
        return
    for place, keys in _places(case.patch):
        if overlap(pointer, place):
            less = case.model_copy(update={"patch": _less(case.patch, keys)})
            yield _edited(prepared, less, baselines)


def _edited(prepared: Prepared, case: Case, baselines: Baselines) -> Prepared:
    return replace(prepared, case=case, snapshot=estate(baselines, case, prepared.name))


def _workspace_stem(identity: str, baselines: Baselines) -> str:
    workspace = workspace_of(lowered(identity))
    stems = (stem for stem, resource in baselines.resources.items() if lowered(str(resource.get("id"))) == workspace)
    return next(stems, "")


def _places(patch: JsonObject, above: str = "", keys: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every place that a merge patch writes to, as a JSON Pointer and as keys."""
    for key, value in patch.items():
        place = f"{above}/{escaped(key)}"
        if isinstance(value, dict) and value:
            yield from _places(value, place, (*keys, key))
        else:
            yield place, (*keys, key)


def _less(patch: JsonObject, keys: Sequence[str]) -> JsonObject:
    head, *rest = keys
    if rest:
        return {**patch, head: _less(patch[head], rest)}
    return {key: value for key, value in patch.items() if key != head}
