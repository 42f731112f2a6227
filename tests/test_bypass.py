"""No edit of a denied change gets it allowed; `python -m tests.bypassing 5000 1` tries more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from tests.bundles import deny_when, rego, write
from tests.bypassing import EDITS, run


@pytest.mark.slow
def test_no_edit_gets_a_denied_change_allowed() -> None:
    """Of the built-in policies, in hundreds of edits of every kind."""
    seen, past = run(500, 8)

    assert not past, past[0]
    tried = {edit for (edit, _), number in seen.items() if number}
    assert tried == set(EDITS)


@pytest.mark.slow
def test_the_edits_find_a_policy_that_can_be_got_past(tmp_path: Path) -> None:
    """One that looks at what its header does not declare, and one that compares by letter."""
    leaks = rego(
        "leaks",
        deny_when('input.resource.properties.publicNetworkAccess == "Enabled"'),
        more="inspects: [/properties/publicNetworkAccess]\nwhen_absent: pass",
    )
    cases = (
        "baseline: workspace\npass: {it is disabled: {}}\n"
        "fail: {enabled: {patch: {properties: {publicNetworkAccess: Enabled}}, path: /properties/x}}\n"
    )
    bundle = load_bundle(write(tmp_path, {"area/leaks/leaks.rego": leaks, "area/leaks/cases.yaml": cases}))

    _, past = run(200, 1, bundle)
    assert {"values_in_other_letters"} <= {one.edit for one in past}
