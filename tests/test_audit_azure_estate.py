"""Live Azure as an estate of the configuration: collected, evaluated and kept by `audit run`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.azure_fake import ROOT, SUBSCRIPTION, WORKSPACE, Azure, error, served
from tests.command import Ran, policyeng

LIVE = f'[[estates]]\nname = "live"\nsubscription = "{SUBSCRIPTION}"\n'


def audited(azure: Azure, folder: Path, *words: str, more: str = "") -> Ran:
    """The result of a command on the audits of an estate in live Azure."""
    (folder / "policyeng.toml").write_text(f"{LIVE}{more}", encoding="utf-8")
    with served(azure) as environ, patch.dict(os.environ, environ):
        return policyeng("audit", *words, folder=folder)


def open_workspace() -> Azure:
    """A workspace that is open to all."""
    return Azure().add({"id": WORKSPACE, "location": "eastus", "properties": {"publicNetworkAccess": "Enabled"}})


def test_a_subscription_is_one_part_that_is_kept(tmp_path: Path) -> None:
    """It is named by its ARM id, in the part as in the run."""
    ran = audited(open_workspace(), tmp_path, "run", "live")
    assert ran.returncode == 1, ran.stderr
    assert "live: run 1, 1 part: " in ran.stdout
    runs = json.loads(policyeng("audit", "runs", "--format", "json", folder=tmp_path).stdout)["runs"]
    assert [(run["parts"], run["inputs"]) for run in runs] == [(1, [ROOT])]


@pytest.mark.slow
def test_a_workspace_is_read_as_the_snapshot_command_reads_it(tmp_path: Path) -> None:
    """The findings are those of `check` on what it writes, also where another process sends the requests."""
    more = 'resource_group = "rg-ml"\nworkspace = "ws"\n'
    azure = open_workspace().deny(f"{WORKSPACE}/computes")
    ran = audited(azure, tmp_path, "run", "live", "--jobs", "2", more=more)
    with served(azure) as environ, patch.dict(os.environ, environ):
        words = ("--subscription", SUBSCRIPTION, "--resource-group", "rg-ml", "--workspace", "ws")
        shot = policyeng("snapshot", "collect", *words)
    summary = json.loads(policyeng("check", "-", "--format", "json", stdin=shot.stdout).stdout)["summary"]
    assert summary["unknown"] > 5
    assert f"1 part: {summary['pass']} pass, {summary['fail']} fail" in ran.stdout


def test_a_subscription_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    """The run states why; it never passes for an empty one."""
    azure = open_workspace()
    azure.faults["*"] = lambda _query, _times: error(403, "AuthorizationFailed")
    ran = audited(azure, tmp_path, "run", "live")
    assert ran.returncode == 2
    assert f"{ROOT}: nothing of it can be read: not allowed (403 AuthorizationFailed)" in ran.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [('cloud = "AzureMars"\n', "there is no cloud `AzureMars`"), ('resource_group = "a/b"\n', "`a/b` is no name")],
)
def test_what_does_not_fit_is_a_usage_error(tmp_path: Path, more: str, message: str) -> None:
    """Nothing is requested, and nothing is kept."""
    azure = open_workspace()
    ran = audited(azure, tmp_path, "run", "live", more=more)
    assert (ran.returncode, message in ran.stderr, not azure.requests) == (3, True, True)
