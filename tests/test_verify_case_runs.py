"""The absent tests of what is no resource."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import BundleError
from policyeng.verify.case_runs import run_cases
from tests.bundles import write


def test_an_absent_test_leaves_out_what_an_approval_states(tmp_path: Path) -> None:
    """A pointer of an approval is left out of it; one that no approval is without is named."""
    header = """# METADATA
# title: t
# custom:
#   id: T-1
#   severity: low
#   judges: [approval]
#   inspects: [POINTER]
#   when_absent: fail
package a

deny contains {"msg": "m", "path": "/series"} if input.resource.approvedBy == null
"""
    made = {
        pointer: load_bundle(
            write(
                tmp_path / name,
                {
                    "area/a/a.rego": header.replace("POINTER", pointer),
                    "area/a/cases.yaml": "judged: A-1\npass: {x: {}}",
                },
            )
        )
        for name, pointer in (("there", "/approvedBy"), ("required", "/status"))
    }

    assert [(run.name, run.reason) for run in run_cases(made["/approvedBy"])] == [("x", ""), ("absent /approvedBy", "")]
    with pytest.raises(BundleError, match="`/status` cannot be left out"):
        list(run_cases(made["/status"]))
