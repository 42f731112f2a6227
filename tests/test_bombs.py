"""Policies that exhaust time or memory end in `error` findings, soon and in little memory, wherever they are run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.bombs import GROUPS, SUBJECT, bomb
from tests.bundles import deny_when, rego, write
from tests.command import ROOT
from tests.effort import sweep
from tests.test_cli_serve import running

pytestmark = pytest.mark.slow

#: Of each group, one bomb that is run over HTTP and in an audit, too.
CHOSEN = {"loops": "product of objects", "sizes": "doubled arrays", "shared": "walked", "patterns": "glob"}
MOST_MEMORY = 300_000_000
#: `policyeng` with a fraction of the time for each evaluation; that it is a second otherwise is tested elsewhere.
LIMIT = 0.25
QUICK = (
    sys.executable,
    "-c",
    f"from policyeng.engines import watchdog; watchdog.LIMIT = {LIMIT}; from policyeng.cli import main; main()",
)
SERVE = (*QUICK, "serve", "--port", "0")
#: Runs a command and prints its exit code, its CPU seconds and its peak of memory in kB.
MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def measured(folder: Path, *arguments: str) -> tuple[int, float, str]:
    """The exit code, CPU seconds and output of a command, whose memory is within the limit."""
    command = [sys.executable, "-c", MEASURED, *QUICK, *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    code, seconds, peak = ran.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(peak) * unit < MOST_MEMORY, ran.stderr
    return int(code), float(seconds), ran.stderr


FINE = rego("fine", deny_when("false"), identity="T-F-1")


def with_state(folder: Path) -> Path:
    """Write a snapshot of the workspace that the bombs read, and a policy that is none."""
    text = json.dumps({"snapshotVersion": 1, "resources": [SUBJECT]})
    return write(folder, {"state/s.json": text, "harmless/area/fine/fine.rego": FINE})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with that snapshot."""
    return with_state(tmp_path)


def bundle_of(folder: Path, bombs: dict[str, str]) -> Path:
    """A bundle of bombs by group, with a policy that is none."""
    texts = {f"area/{group}/p.rego": bomb(group, name) for group, name in bombs.items()}
    return write(folder / "policies", {**texts, "area/fine/fine.rego": FINE})


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The CPU seconds of a check with a policy that is no bomb."""
    folder = with_state(tmp_path_factory.mktemp("usual"))
    return measured(folder, "check", "state", "--format", "json", "--policy", "harmless")[1]


@pytest.mark.parametrize("group", sweep(GROUPS, 4))
def test_each_bomb_is_an_error_of_its_own(group: str, folder: Path, usual: float) -> None:
    """All of a group in one process: the policy among them that is none passes."""
    texts = {f"area/b{n}/b{n}.rego": bomb(group, name) for n, name in enumerate(GROUPS[group])}
    write(folder / "policies", {**texts, "area/fine/fine.rego": FINE})
    check = "check", "state", "--format", "json", "--policy"
    code, seconds, printed = measured(folder, *check, "policies")
    report = json.loads(printed[printed.index("{") :])
    outcomes = {finding["policy"]: finding["outcome"] for finding in report["findings"]}
    assert outcomes.pop("T-F-1") == "pass"
    assert set(outcomes.values()) == {"error"}, outcomes
    assert len(outcomes) == len(GROUPS[group])
    assert code == 2
    # Each takes its limit at the most; compiling and a busy machine take the rest.
    assert seconds < 5 * (usual + len(outcomes) * LIMIT)


def test_a_server_keeps_running_after_each_bomb(folder: Path) -> None:
    """It denies the change, because nothing shows that it is right, and responds to the next one."""
    bundle_of(folder, CHOSEN)
    with running(folder, "--policy", "policies", "--snapshot", "state/s.json", command=SERVE) as (server, address):
        for _ in range(2):
            response = httpx.post(f"{address}/v1/admit", json=SUBJECT, timeout=60)
            # A busy machine may take longer than the server waits.
            assert response.status_code == 503 or response.json()["allowed"] is False, response.text
            assert httpx.get(f"{address}/healthz").status_code == 200
        if sys.platform == "linux":
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
            [peak] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
            assert peak * 1024 < MOST_MEMORY


def test_an_audit_stores_the_errors(folder: Path) -> None:
    """It ends as a check does."""
    bundle_of(folder, CHOSEN)
    write(folder, {"policyeng.toml": '[[estates]]\nname = "estate"\ninputs = ["state"]\n'})
    code, _, printed = measured(folder, "audit", "run", "--policy", "policies")
    assert code == 2
    assert "1 pass, 0 fail" in printed
