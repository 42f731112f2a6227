"""Law 3: what was not observed to be read changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import recording
from policyeng.evaluation.tracing import Differences
from policyeng.rego import tracing
from policyeng.verify.generators.examples import examples_of
from policyeng.verify.laws.law import LawContext, Trial, Violation
from policyeng.verify.laws.read_laws import LAW
from tests.bundles import write

PYTHON = """from policyeng import Denial, policy

MACHINE = "Microsoft.Compute/virtualMachines"


@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def check(given):
    for key, resource in given.snapshot.by_id.items():
        {body}
"""


def violations(bundle: Bundle, examples: int, seed: int = 3) -> list[Violation]:
    """The violations of the law in so many drawn examples."""
    drawn = enumerate(islice(examples_of(bundle, seed), examples))
    grounds = LawContext(bundle)
    found = (LAW.violated(Trial(grounds, example, chance=f"{seed}/{number}")) for number, example in drawn)
    return [violation for violation in found if violation]


@pytest.mark.slow
def test_our_policies_depend_on_what_they_were_observed_to_read() -> None:
    """In Rego and in Python; `policyeng verify --law observed` draws thousands."""
    assert violations(load_bundle(), 25) == []


@pytest.mark.parametrize(
    "body",
    [
        'if resource.get("tags"): yield Denial("m", path="/tags", actual=sorted(resource["tags"]))',
        'if "x" in {**resource.get("properties", {})}: yield Denial("m")',
        'if ", ".join(map(str, resource)) == "": yield Denial("m")',
        'if [*resource.values()][-1:] == [None] or dict(resource) == {}: yield Denial("m", actual=resource)',
        'match resource:\\n            case {"tags": {"owner": owner}}: yield Denial("m", actual=owner)',
    ],
)
def test_python_policies_are_observed_whatever_they_use(tmp_path: Path, body: str) -> None:
    """Functions in C, patterns, and what denials carry."""
    text = PYTHON.replace("{body}", body.replace("\\n", "\n"))
    bundle = load_bundle(write(tmp_path, {"area/p/p.py": text}))

    assert violations(bundle, 40) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Differences, "meets"),
        (Differences, "_compare_lists"),
        (tracing.RecordedObject, "get"),
        (recording._RecordedObject, "get"),
    ],
)
def test_unobserved_fields_are_found(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a part of the recording, or of the comparison."""
    unrecorded: dict[str, Callable[..., Any]] = {
        "get": lambda self, key, default=None: self._value.get(key, default),
    }
    monkeypatch.setattr(owner, name, unrecorded.get(name, lambda *_: False))

    assert violations(load_bundle(), 60)
