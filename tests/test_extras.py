"""What only some need is an extra: it is loaded by the commands that use it, and missed aloud where it is not there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from policyeng.cli.extras import explain_missing_module
from tests.bundles import deny_when, rego, write

ROOT = Path(__file__).resolve().parents[1]
#: The modules of each extra.
EXTRAS = {
    "rego": ("cryptography", "graphql", "tzdata"),
    "server": ("fastapi", "httptools", "prometheus_client", "uvicorn", "uvloop"),
    "signing": ("cryptography", "jwt"),
    "audit": ("alembic", "apprise", "cronsim", "sqlalchemy"),
    "azure": ("azure",),
    "postgresql": ("psycopg",),
    "spark": ("pandas", "pyarrow", "pyspark"),
    "verify": ("hypothesis",),
}
#: By the beginning of a command line, the extra that it needs; `audit ahead` and `notify` without a target need none.
NEEDING = {
    "serve": "server",
    "snapshot collect": "azure",
    "bundle sign": "signing",
    "bundle build --output signed.tar.gz --signing-key": "signing",
    "bundle verify built.tar.gz --verification-key": "signing",
    **{
        f"audit {name}": "audit"
        for name in (
            "run", "runs", "report", "history", "impact", "schedule", "verify-history", "replay", "evidence", "prune"
        )
    },
}  # fmt: skip


def require_hints(results: dict[str, tuple[int, str]]) -> None:
    """Require that each command did its work, or named the extra that it needs."""
    for command, (code, printed) in results.items():
        assert "internal error" not in printed, (command, printed)
        assert "Traceback" not in printed, (command, printed)
        extra = next((NEEDING[name] for name in NEEDING if f"{command} ".startswith(f"{name} ")), None)
        if extra is None:
            assert "policyeng[" not in printed, (command, printed)
        else:
            assert (code, f"policyeng[{extra}]" in printed) == (3, True), (command, printed)
    assert {name for name in NEEDING if not any(f"{one} ".startswith(f"{name} ") for one in results)} == set()


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


@pytest.mark.slow
def test_every_command_works_without_extras_or_names_its_own(tmp_path: Path) -> None:
    """A wrong use (exit 3), without a traceback; of each command and subcommand that there is."""
    every = ",".join(sorted({name for names in EXTRAS.values() for name in names}))
    snapshot = shutil.copy(ROOT / "samples" / "workspaces" / "exempted.json", tmp_path)
    command = [sys.executable, str(ROOT / "tests" / "every_command.py"), every, Path(snapshot).name]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    require_hints(json.loads(result.stdout))


def test_a_store_without_its_driver_names_its_extra() -> None:
    """Of several extras, the one that is missing."""
    words = "audit run --input samples/workspaces --estate e --store postgresql://localhost/none"
    result = ran(WITHOUT, "psycopg", *words.split())

    assert (result.returncode, "policyeng[postgresql]" in result.stderr) == (3, True), result.stderr


def test_every_library_of_an_extra_is_known_by_its_modules() -> None:
    """To the guard of all commands, and to these tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: libraries for name, libraries in project["optional-dependencies"].items() if name in EXTRAS}
    installed = {name: len(re.findall(r"^([\w-]+)", "\n".join(each), re.MULTILINE)) for name, each in extras.items()}
    assert set(installed) == set(project["optional-dependencies"]) - {"all", "dev"}
    for extra, modules in EXTRAS.items():
        for module in modules:
            explained = explain_missing_module(ModuleNotFoundError(name=f"{module}.part"))
            assert explained is not None
            assert any(f"policyeng[{name}]" in str(explained) for name, other in EXTRAS.items() if module in other)
        assert len({module.partition(".")[0] for module in modules}) >= installed[extra] - (extra == "azure")
    assert explain_missing_module(ModuleNotFoundError(name="orjson")) is None


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
except (rego.LibraryError, rego.EvaluationError) as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("call", "library"),
    [
        ('crypto.x509.parse_certificates("")', "cryptography"),
        ('io.jwt.decode("a.b.c")', "cryptography"),
        ('graphql.is_valid("{a}", "")', "graphql"),
    ],
)
def test_a_builtin_without_its_library_is_refused_when_it_is_compiled(call: str, library: str) -> None:
    """With the name of the builtin, and what to install."""
    result = ran(COMPILING, ",".join(EXTRAS["rego"]), call)

    assert result.stderr == ""
    name = call.partition("(")[0]
    assert result.stdout == f"{name} needs `{library}`, which is not installed; install `policyeng[rego]`\n"


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


@pytest.mark.slow
def test_a_bundle_whose_builtin_has_no_library_is_not_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the engine (exit 2), also where the compiled program is in the cache."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    body = deny_when('crypto.x509.parse_certificates(input.resource.properties.x)[0].Subject == "x"')
    folder = write(tmp_path / "bundle", {".manifest": '{"roots": [""]}', "area/keyed/keyed.rego": rego("keyed", body)})
    command = ["check", "samples/workspaces/exempted.json", "--as-of", "2026-06-01T00:00:00Z", "--policy", str(folder)]

    installed = ran(WITHOUT, "none", *command)
    result = ran(WITHOUT, ",".join(EXTRAS["rego"]), *command)

    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert result.returncode == 2, result.stderr
    assert "crypto.x509.parse_certificates needs `cryptography`" in result.stderr
    assert "install `policyeng[rego]`" in result.stderr
    assert "Traceback" not in result.stderr
