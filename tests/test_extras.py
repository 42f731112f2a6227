"""What only some need is an extra: it is loaded by the commands that use it, and missed aloud where it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: The modules of each extra.
EXTRAS = {
    "rego": ("tzdata",),
    "server": ("fastapi", "prometheus_client", "uvicorn"),
    "signing": ("cryptography", "jwt"),
    "audit": ("alembic", "apprise", "cronsim", "sqlalchemy"),
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
def test_a_command_without_its_extra_shows_how_to_install_it(extra: str) -> None:
    """A wrong use (exit 3), without a traceback."""
    result = ran(WITHOUT, ",".join(EXTRAS[extra]), *NEEDING[extra].split())

    assert result.returncode == 3, result.stderr
    assert f"policyeng[{extra}]" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["check --as-of 2026-06-01T00:00:00Z", "diff samples/workspaces/exempted.json", "audit ahead --days 3 --input"],
)
def test_what_needs_no_extra_does_without_them(command: str) -> None:
    """Snapshots are evaluated and compared without a database."""
    every = ",".join(name for names in EXTRAS.values() for name in names)
    result = ran(WITHOUT, every, *command.split(), "samples/workspaces/exempted.json")

    assert result.returncode in (0, 1), result.stderr
    assert "Traceback" not in result.stderr


#: A Rego module in a Python where modules are not installed: prints what it gives, or why it gives nothing.
COMPILING = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from policyeng import rego
try:
    print(rego.compile({"p.rego": f"package p\\nv := {sys.argv[2]}"}).query("data.p.v"))
except rego.EvaluationError as error:
    print(error)
"""


def test_hashes_need_no_library() -> None:
    """The standard library has them."""
    result = ran(COMPILING, ",".join(EXTRAS["rego"]), 'crypto.sha1("")')

    assert result.stdout == "da39a3ee5e6b4b0d3255bfef95601890afd80709\n", result.stderr


def test_without_time_zones_an_evaluation_names_what_to_install() -> None:
    """Where neither the machine nor Python has any."""
    hidden = f"import zoneinfo; zoneinfo.reset_tzpath(())\n{COMPILING}"
    result = ran(hidden, ",".join(EXTRAS["rego"]), 'time.date([0, "Europe/Berlin"])')

    assert "unknown time zone Europe/Berlin" in result.stdout, result.stderr
    assert "install `policyeng[rego]`" in result.stdout
