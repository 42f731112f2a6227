"""Law 12: one estate in two formats has the same findings where both can carry the fields.

Every case of every policy is an estate; each is written in each format by the writers of `tests/writers`, read back,
and judged beside the same resources in ARM shape.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import evaluate
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Snapshot, lowered
from policyeng.sources import FORMATS, given, read_inputs
from policyeng.sources.arm_entry import types_of
from policyeng.sources.native import read as read_native
from policyeng.sources.service_made import service_made, with_attachment
from policyeng.verify.drawing.estates import Estates

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws"
#: By format, the modules of writers that write it, and how many decided findings the estates must bring at least.
WRITERS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "arm-template": (("arm_template",), 2500),
    "azure-cli": (("azure_cli", "azure_cli_work"), 1500),
    "az-output": (("az_output",), 750),
    "terraform": (("terraform",), 2500),
    "kubernetes": (("kubernetes",), 1200),
    "resource-graph": (("resource_graph",), 600),
}
#: Every how manieth case is judged in a run of the suite; `python -m tests.test_formats_agree` takes all.
STEP = 60


class Difference(NamedTuple):
    """A finding that is not the same in both formats."""

    policy: str
    resource: str
    arm: str
    other: str


@cache
def bundle() -> Bundle:
    """The built-in policies."""
    return load_bundle()


@cache
def estates() -> list[tuple[str, JsonObject]]:
    """Every case of every policy, named, with its estate."""
    return [
        (f"{policy} {number}", document)
        for policy, cases in sorted(Estates(bundle()).cases.items())
        for number, (_, document) in enumerate(cases)
    ]


def before_deployment(resource: JsonObject) -> JsonObject:
    """A resource without what only the service says, but for what follows from the rest."""
    pointers = {*service_made(resource["type"]), "/properties/isAttachedCompute"}
    return with_attachment(
        {
            key: {inner: value for inner, value in part.items() if f"/{key}/{inner}" not in pointers}
            if isinstance(part, dict)
            else part
            for key, part in resource.items()
        }
    )


def written(name: str, estate: list[JsonObject], folder: Path) -> list[JsonObject]:
    """The resources of an estate that a format can say, after writing them into a folder."""
    said = []
    for module in map(import_module, (f"policyeng.verify.writers.{writer}" for writer in WRITERS[name][0])):
        sayable = [before_deployment(entry) for entry in estate if _is_sayable(module, entry)]
        for file, content in module.write(sayable).items() if sayable else ():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        said += sayable
    return said


def _is_sayable(module: ModuleType, resource: JsonObject) -> bool:
    """Whether a writer can say a resource: its id is of its type, and all values are of the types of their fields."""
    try:
        texts = all(isinstance(value, str) for value in resource.get("tags", {}).values())
        own = lowered(resource["type"]) in types_of(resource["id"])
        return bool(texts and own and module.expressible(resource) and module.write([resource]))
    except (AttributeError, KeyError, TypeError):
        return False


def compared(name: str, document: JsonObject, folder: Path) -> tuple[int, list[Difference]]:
    """How many findings both formats decide, and those that differ."""
    resources = written(name, document["resources"], folder)
    if not resources:
        return 0, []
    inputs = read_inputs([folder], said=given(SCOPE, WORKSPACE, {}))
    if any(problem.level == "error" for problem in inputs.problems):
        return 0, []  # refused aloud, so no verdict stands on it
    stated = {key: value for key, value in document.items() if key != "resources"}
    facts = read_native({"snapshotVersion": 1, **stated})
    beside: dict[str, list[object]] = {}
    for entry in facts.stated:
        beside.setdefault(entry.collection, []).append(entry.noun)
    update = {key: tuple(value) for key, value in beside.items()}
    arm = Snapshot(resources=tuple(resources)).model_copy(update=update)
    both = [evaluate(bundle(), each, as_of=AS_OF) for each in (arm, inputs.snapshot.model_copy(update=update))]
    return _differences(both[0], both[1])


def _differences(arm: Evaluation, other: Evaluation) -> tuple[int, list[Difference]]:
    found = {_key(finding): finding for finding in other.findings}
    decided, different = 0, []
    for finding in arm.findings:
        twin = found.pop(_key(finding), None)
        if twin is not None and twin.outcome is Outcome.UNKNOWN:
            continue  # it says why; what each format cannot carry is held by the format's own tests
        if twin is None or _said(finding) != _said(twin):
            different.append(Difference(*_key(finding), _said(finding), _said(twin) if twin else "no finding"))
        else:
            decided += 1
    others = {key: finding for key, finding in found.items() if finding.outcome is not Outcome.UNKNOWN}
    different += [Difference(*key, "no finding", _said(finding)) for key, finding in others.items()]
    return decided, different


def _key(finding: Finding) -> tuple[str, str]:
    return finding.policy, lowered(finding.resource)


def _said(finding: Finding) -> str:
    """What a finding says; `"1"` where a number belongs and words without their capitals are read as ARM means them."""
    denials = [{**denial.model_dump(mode="json"), "actual": str(denial.actual)} for denial in finding.denials]
    return f"{finding.outcome} {denials}".lower()


@pytest.mark.parametrize("name", WRITERS)
def test_one_estate_has_the_same_findings_in_each_format(name: str, tmp_path: Path) -> None:
    """What the format decides at all, it decides as ARM does, denial for denial."""
    total = 0
    for number, (case, document) in enumerate(estates()[::STEP]):
        decided, different = compared(name, document, tmp_path / str(number))
        assert different == [], case
        total += decided

    assert total >= WRITERS[name][1]


def test_every_format_of_others_has_a_writer() -> None:
    """Those in ARM shape need none: the estates are written in it."""
    assert {*FORMATS} - {*WRITERS} == {"native", "workspace-config", "role-access", "arm-rest"}


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    for chosen in sys.argv[1:] or WRITERS:
        counts: Counter[str] = Counter()
        for case_, document_ in estates():
            with TemporaryDirectory() as place:
                decided_, different_ = compared(chosen, document_, Path(place))
            counts["decided"] += decided_
            counts["different"] += len(different_)
            for one in different_:
                sys.stdout.write(f"{chosen}: {case_}: {one}\n")
        sys.stdout.write(f"{chosen}: {dict(counts)}\n")
