"""Policies chosen by id, area, control and severity."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.policy_selection import selected
from policyeng.errors import UsageError
from policyeng.models import Severity
from tests.bundles import deny_when, rego, write


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """Three policies: a critical and a low one in `area`, and a high one in an area called `low`."""
    of_low = rego("c", deny_when("true"), identity="T-C-1").replace("package area.c", "package low.c")
    files = {
        "area/a/a.rego": rego("a", deny_when("true"), severity="critical", more="controls: {mcsb-v1: [NS-2]}"),
        "area/b/b.rego": rego("b", deny_when("true"), identity="T-B-1", severity="low"),
        "low/c/c.rego": of_low,
    }
    return load_bundle(write(tmp_path, files))


@pytest.mark.parametrize(
    ("select", "ignore", "ids"),
    [
        (["critical"], [], ["T-A-1"]),
        (["HIGH", "Critical"], [], ["T-A-1", "T-C-1"]),
        (["area"], ["critical"], ["T-B-1"]),
        (["ns-2", "high"], [], ["T-A-1", "T-C-1"]),
        ([], ["high", "T-B-1"], ["T-A-1"]),
        (["medium"], [], []),
        ([], ["medium", "info"], ["T-A-1", "T-B-1", "T-C-1"]),
    ],
)
def test_a_severity_selects_that_severity_alone(
    bundle: Bundle, select: list[str], ignore: list[str], ids: list[str]
) -> None:
    """Not those above it; it mixes with the other selectors, and may be the severity of no policy."""
    assert [policy.id for policy in selected(bundle, select, ignore).policies] == ids


def test_an_area_goes_before_a_severity_of_its_name(bundle: Bundle) -> None:
    """What the bundle itself calls `low` is meant."""
    assert [policy.id for policy in selected(bundle, ["low"]).policies] == ["T-C-1"]


def test_a_selector_that_names_nothing_is_refused(bundle: Bundle) -> None:
    """With the nearest name and what a selector may be."""
    with pytest.raises(UsageError, match="`hihg` is no policy id, area, control or severity; did you mean `high`"):
        selected(bundle, ["hihg"])


def test_severities_divide_the_built_in_policies() -> None:
    """Each policy is of one severity, and no area or control of ours is called like one."""
    whole = load_bundle()
    by_severity = {severity: selected(whole, [severity]).policies for severity in Severity}

    assert sum(map(len, by_severity.values())) == len(whole.policies)
    assert all(policy.header.severity is severity for severity, chosen in by_severity.items() for policy in chosen)


def test_what_is_not_chosen_is_idle(bundle: Bundle) -> None:
    """Choosing again keeps the rest: a profile may set parameters of any."""
    chosen = selected(selected(bundle, ["area"]), ["critical"])

    assert [policy.id for policy in chosen.policies] == ["T-A-1"]
    assert sorted(policy.id for policy in chosen.idle) == ["T-B-1", "T-C-1"]
