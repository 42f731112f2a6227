"""What only some need is an extra: it is loaded by the commands that use it, and missed aloud where it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: The modules of each extra.
EXTRAS = {
    "server": ("fastapi", "prometheus_client", "uvicorn"),
    "signing": ("cryptography", "jwt"),
    "audit": ("alembic", "apprise", "apscheduler", "sqlalchemy"),
    "azure": ("azure",),
    "postgresql": ("psycopg",),
    "spark": ("pandas", "pyarrow", "pyspark"),
    "verify": ("hypothesis",),
}
#: By extra, a command that cannot do without it.
NEEDING = {
    "server": "serve",
    "audit": "audit runs",
    "azure": "snapshot collect --subscription 11111111-1111-1111-1111-111111111111",
    "postgresql": "audit run --input samples/workspaces --estate e --store postgresql://localhost/none",
}


#: A command line where modules are not installed.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from policyeng.cli import run
sys.exit(run(sys.argv[2:]))
"""


def ran(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A program in a Python of its own."""
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_naming_the_commands_loads_no_extra() -> None:
    """Nor what renders pages: together they take seconds."""
    names = ["jinja2", *(name for names in EXTRAS.values() for name in names)]

    assert ran(f"import sys, policyeng.cli.app; print(set({names}) & set(sys.modules))").stdout == "set()\n"


@pytest.mark.parametrize("extra", NEEDING)
def test_a_command_without_its_extra_says_how_to_install_it(extra: str) -> None:
    """A wrong use (exit 3), without a traceback."""
    answer = ran(WITHOUT, ",".join(EXTRAS[extra]), *NEEDING[extra].split())

    assert answer.returncode == 3, answer.stderr
    assert f"policyeng[{extra}]" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    "command", ["check --as-of 2026-06-01", "diff samples/workspaces/exempted.json", "audit ahead --days 3 --input"]
)
def test_what_needs_no_extra_does_without_them(command: str) -> None:
    """Snapshots are judged and compared without a database."""
    every = ",".join(name for names in EXTRAS.values() for name in names)
    answer = ran(WITHOUT, every, *command.split(), "samples/workspaces/exempted.json")

    assert answer.returncode in (0, 1), answer.stderr
    assert "Traceback" not in answer.stderr
