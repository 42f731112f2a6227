"""Law 8: the available engines give the same, and one that is missing is named."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.engines import opa
from policyeng.errors import EngineError
from policyeng.verify.generators.examples import examples_of
from policyeng.verify.laws.law import LawContext, Trial, Violation, format_remarks
from policyeng.verify.laws.outcome_laws import ENGINES as LAW

BROKEN = Path(__file__).parent / "broken" / "engines"


def violations(grounds: LawContext, examples: int) -> list[Violation]:
    """The violations of the law in the first examples of a seed."""
    tried = (Trial(grounds, example, str(number)) for number, example in enumerate(examples_of(grounds.bundle, 1)))
    return [found for trial in islice(tried, examples) if (found := LAW.violated(trial))]


@pytest.mark.slow
def test_our_engines_agree() -> None:
    """On our policies no engine differs from another, and pairs were compared."""
    grounds = LawContext(load_bundle())

    assert violations(grounds, 12) == []
    assert grounds.remarks["engines: pairs that two or more engines agree on"] > 150
    assert any("evaluated by embedded" in line and "opa" in line for line in format_remarks(grounds.remarks))


def test_a_twin_with_another_boundary_is_found() -> None:
    """The policy is blamed, with the result of each engine on the boundary itself."""
    found = violations(LawContext(load_bundle(BROKEN)), 20)

    assert {violation.policy for violation in found} == {"BROKEN-ENGINES"}
    assert {violation.message for violation in found} == {"the engines disagree"}
    assert all(violation.lines[0].startswith("embedded") and '"pass"' in violation.lines[0] for violation in found)
    assert all('"actual":2,' in violation.lines[-1] for violation in found)


def test_a_missing_engine_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an `opa` the other engines are compared, and the run reports why that one was not."""

    def missing() -> str:
        raise EngineError("there is no `opa`", remedy="install it")

    monkeypatch.setattr(opa, "version", missing)
    grounds = LawContext(load_bundle(BROKEN))

    assert violations(grounds, 20)
    assert grounds.remarks["engines: `opa` is missing and took no part: there is no `opa`; install it"] == 0
    assert "engines: `opa` is missing and took no part: there is no `opa`; install it" in grounds.remarks


def test_what_only_one_engine_evaluates_is_reported(tmp_path: Path) -> None:
    """A policy in Python alone is compared with nothing, and the run names it."""
    source = Path(__file__).parent / "broken" / "paths" / "network" / "public_access" / "public_access.py"
    (tmp_path / "area").mkdir()
    (tmp_path / "area" / "public_access.py").write_bytes(source.read_bytes())
    grounds = LawContext(load_bundle(tmp_path))

    assert violations(grounds, 3) == []
    assert "engines: not compared, because only one engine evaluates them: BROKEN-PATHS" in grounds.remarks
