"""No edit of a failing document makes it pass; `python -m tests.bypassing_check 10000 1` tries more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from tests import bypassing_check
from tests.bundles import deny_when, rego, write
from tests.bypassing_check import EDITS, run

CASES = (
    "baseline: workspace\npass: {it is disabled: {}}\n"
    "fail: {enabled: {patch: {properties: {publicNetworkAccess: Enabled}}, path: /properties/x}}\n"
)
#: Few policies, each of which takes a second to compile: of tags, words, numbers and a member that is absent.
TRIED = ("AML-COST-101", "AML-NET-001", "AML-NET-105", "AML-RBAC-103")


@pytest.mark.slow
def test_no_edit_makes_a_failing_document_pass(bundle: Bundle) -> None:
    """In all formats, with edits of every kind."""
    seen, past = run(120, 3, bundle.only(policy for policy in bundle.policies if policy.id in TRIED))

    assert not past, past[0]
    assert {"exit 1", "exit 2"} == {outcome for _, outcome in seen}


@pytest.mark.slow
def test_the_edits_find_a_policy_that_compares_by_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run without a finding proves something."""
    # Few of the words of a whole workspace are the one that is compared: every edit is one of words.
    monkeypatch.setattr(bypassing_check, "EDITS", {"words": EDITS["words"]})
    monkeypatch.setattr(bypassing_check, "ENCODINGS", {})
    leaks = rego(
        "leaks",
        deny_when('input.resource.properties.publicNetworkAccess == "Enabled"'),
        more="inspects: [/properties/publicNetworkAccess]\nwhen_absent: pass",
    )
    bundle = load_bundle(write(tmp_path, {"area/leaks/leaks.rego": leaks, "area/leaks/cases.yaml": CASES}))

    _, past = run(300, 1, bundle)
    assert "words" in {one.edit for one in past}
