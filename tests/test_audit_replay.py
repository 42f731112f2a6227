"""`audit replay` evaluates a stored run again and gives the same bytes, or reports what differs."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from policyeng.audit.replay import replay
from policyeng.bundle import load_bundle
from tests.audits import POLICIES, Audited, exemption, setup_of
from tests.bundles import WORKSPACE, deny_when, rego, write
from tests.command import policyeng

PYTHON = """
from policyeng.bundle import policy
from policyeng.models import Denial

@policy(id="T-P-1", title="judged in Python", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def judge(input):
    if input.as_of.year > 2000:
        yield Denial(msg="m", path="/properties/x", actual=input.facts is not None, expected=None)
"""


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    """An estate that is evaluated in Rego and Python, with given data, and a part that cannot be read."""
    files = {**POLICIES, "area/p/p.py": PYTHON}
    files["area/d/d.rego"] = rego("d", deny_when("input.resource.properties.x in data.given.wrong"), identity="T-D-1")
    given = write(tmp_path / "given", {"given.json": '{"given": {"wrong": [1, 7]}}'})
    bundle = load_bundle(write(tmp_path / "policies", files), data=[given / "given.json"])
    kept = Audited(tmp_path, setup=setup_of(bundle))
    kept.write("d", b'{"resources": [{"id": "' + WORKSPACE.encode() + b'"')
    return kept


def test_a_run_is_evaluated_again_to_the_same_bytes(audited: Audited, tmp_path: Path) -> None:
    """Though nothing is left of the policies, the data and the estate that were read."""
    first = audited.audit(exemptions=[exemption("one")])
    second = audited.audit()
    for path in [*(tmp_path / "policies").rglob("*.*"), *(tmp_path / "given").rglob("*.*")]:
        path.unlink() if path.is_file() else None
    audited.put("a", {"else": {}})
    for run in (first, second):
        replayed = replay(audited.store, run)
        assert replayed.differences == []
        assert replayed.content == run.content
    assert first.content != second.content
    audited.close()


def test_the_bundle_of_a_run_is_the_one_that_evaluated(audited: Audited) -> None:
    """With its selection, its data and its digest."""
    bundle = audited.held.bundle
    selected = bundle.only(policy for policy in bundle.policies if policy.id != "T-B-1")
    run = audited.audit(bundle=selected)
    kept = audited.store.bundle(run)
    assert [policy.id for policy in kept.policies] == ["T-A-1", "T-D-1", "T-P-1"]
    assert (kept.name, kept.revision, kept.digest, kept.data, kept.given) == (
        bundle.name,
        bundle.revision,
        bundle.digest,
        bundle.data,
        bundle.given,
    )
    audited.close()


def test_the_built_in_policies_are_kept_whole(tmp_path: Path) -> None:
    """The bundle that is read from the store decides as they do."""
    audited = Audited(tmp_path, setup=setup_of(load_bundle()))
    run = audited.audit()
    assert audited.store.bundle(run).digest == run.bundle.digest
    assert replay(audited.store, run).content == run.content
    audited.close()


def test_what_differs_is_named_with_its_likely_cause(audited: Audited) -> None:
    """The part, the first place, both values, and the engine."""
    run = audited.audit()
    words = ("audit", "replay", "1", "--store", audited.url)
    same = policyeng(*words)
    assert (same.returncode, same.stdout) == (
        0,
        f"run 1: 4 parts re-evaluated, identical results\ncontent {run.content}\n",
    )
    with (
        patch.object(sys.modules["policyeng.evaluation.evaluate"], "engine_version", lambda *_: "99.0"),
        patch("policyeng.audit.replay.engine_version", lambda *_: "99.0"),
    ):
        other = policyeng(*words)
    assert other.returncode == 2
    assert "a.json: /evaluation/engine/version: was" in other.stderr
    assert "the replay 99.0" in other.stderr
    assert f"was     {run.content}" in other.stdout
    audited.close()


def test_a_run_that_is_not_there_is_a_usage_error(audited: Audited) -> None:
    """It states where runs are listed."""
    refused = policyeng("audit", "replay", "7", "--store", audited.url)
    assert refused.returncode == 3
    assert "there is no run 7; `policyeng audit runs` lists them" in refused.stderr
    audited.close()
