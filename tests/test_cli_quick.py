"""A plain `check` is read without typer as typer reads it, and loads nothing that it does not use."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import orjson
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.exceptions import TyperException

from policyeng import cli
from policyeng.cli.app import app
from policyeng.cli.fast_path import plain_check
from policyeng.cli.plain_options import FLAGS, PATH_LISTS, TEXT_LISTS, TEXTS
from tests.conftest import ROOT

plain_options = import_module("tools.plain_options")

COMMAND = typer.main.get_command(app).commands["check"]  # type: ignore[attr-defined]  # a group, whatever its declared type
BASELINES = ROOT / "samples" / "baselines"
VALUES = st.sampled_from(
    ["a", "a=b", "network,NS-2", "json", "x y", "ä", "-", "--", "", " ", "--select", "json=-", "1"]
)
OPTIONS = st.sampled_from([*TEXTS, *TEXT_LISTS, *PATH_LISTS, *FLAGS, "--jobs", "--help", "--nothing", "-x", "--sel"])
WORDS = st.one_of(
    VALUES.map(lambda value: [value]),
    OPTIONS.map(lambda option: [option]),
    st.tuples(OPTIONS, VALUES).map(list),
    st.tuples(OPTIONS, VALUES).map(lambda pair: ["=".join(pair)]),
)
LINES = st.lists(WORDS, max_size=5).map(lambda words: [word for group in words for word in group])

#: What a plain run must not load: each costs more than it gives there.
HEAVY = {
    "_ctypes",
    "policyeng.bundle.assembling",
    "policyeng.bundle.rego_trees",
    "policyeng.bundle.external_policies",
    "policyeng.bundle.python_headers",
    "pathspec",
    "pydantic",
    "pydantic_core",
    "zoneinfo",
    "importlib.resources",
    "policyeng.rego.compiler",
    "policyeng.rego.parser",
    "policyeng.sources.arm_template",
    "policyeng.sources.azure_cli",
    "policyeng.sources.kubernetes",
    "policyeng.sources.terraform",
    "typer",
    "click",
    "rich",
    "yaml",
    "jsonschema",
    "referencing",
    "hypothesis",
    "opa_client",
    "cryptography",
    "difflib",
    "email",
    "importlib.metadata",
    "tomllib",
    "asyncio",
    "http",
    "subprocess",
    "xml",
    "policyeng.verify",
    "policyeng.parsing.yaml_text",
    "policyeng.cli.app",
    "policyeng.cli.options",
}


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """A plain run switches garbage collection off in its process."""
    yield
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def plain_environment() -> None:
    """Variables of ours would be typer's to read."""
    for name in [name for name in os.environ if name.startswith("POLICYENG_") and name != "POLICYENG_CACHE_DIR"]:
        del os.environ[name]


def test_the_options_are_those_that_are_declared() -> None:
    """The table is written from the declarations: `python -m tools.plain_options`."""
    assert plain_options.generate() == plain_options.TARGET.read_text(encoding="utf-8")


@given(LINES)
def test_what_is_read_is_what_typer_reads(line: list[str]) -> None:
    """Every line that is taken gives the same arguments; those that typer refuses are left to it."""
    plain = plain_check(["check", *line], {})
    if plain is None:
        return
    context = COMMAND.make_context("check", list(line))

    assert all(word.strip() for word in line)
    given = {name for name in context.params if context.get_parameter_source(name).name != "DEFAULT"}
    assert set(plain) == given
    assert plain == {name: _as_list(context.params[name]) for name in given}


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_plain_lines_are_taken(tmp_path: Path) -> None:
    """The result None would be right everywhere and of no use."""
    line = ["check", "a.json", "-", "--select=x", "-s", "y,z", "-f", "json", "--policy", str(tmp_path), "--no-cache"]

    assert plain_check(line, {"PATH": "/bin", "POLICYENG_CACHE_DIR": "/c"}) == {
        "inputs": ["a.json", "-"],
        "select": ["x", "y,z"],
        "format_": "json",
        "policy": [tmp_path],
        "no_cache": True,
    }


@pytest.mark.parametrize(
    "line",
    [
        *("", "test", "check --help", "check a --jobs 2", "check a --selekt b", "check a --select"),
        *("check -- a", "check a -x", "check a --select --ignore", "check a --no-exemptions=1", "check a --format="),
    ],
)
def test_every_other_line_is_left_to_typer(line: str) -> None:
    """Help, mistakes, and what this reader does not know."""
    assert plain_check(line.split(), {}) is None


def test_variables_are_left_to_typer() -> None:
    """An option may come from the environment, and completion requests through it."""
    for name in ("POLICYENG_FORMAT", "POLICYENG_NO_CACHE", "POLICYENG_SELECT", "_POLICYENG_COMPLETE"):
        assert plain_check(["check", "a.json"], {name: "x"}) is None


def test_a_mistake_reads_as_it_did() -> None:
    """Typer's words and its exit code."""
    with pytest.raises(TyperException):
        COMMAND.make_context("check", ["a", "--selekt", "b"])
    result = subprocess.run(
        [sys.executable, "-m", "policyeng", "check", "a", "--selekt", "b"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 3
    assert "--selekt" in result.stderr


@pytest.mark.parametrize("settings", ["", 'exclude = ["/tests/", "*.bak", "!keep.json"]\n'])
def test_a_plain_run_loads_nothing_that_it_does_not_use(settings: str, tmp_path: Path) -> None:
    """Once its programs and headers are in the cache, and in a folder with common settings, too."""
    if settings:
        (tmp_path / "policyeng.toml").write_text(settings, encoding="utf-8")
    script = (
        "import os, sys\nfrom policyeng.cli import main\nsys.argv.insert(1, 'check')\n"
        "def leave(code):\n    sys.stdout = sys.stderr\n"
        "    print(code, *sys.modules, sep='\\n')\nos._exit = leave\nmain()\n"
    )
    sample = ROOT / "samples" / "workspaces" / "regulated.json"
    assert orjson.loads(sample.read_bytes()).keys() >= {"resources", "approvals"}
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", script, sample], capture_output=True, text=True, check=True, cwd=tmp_path
        )
    code, *modules = result.stderr.splitlines()

    assert code in ("0", "1")
    assert {name for name in HEAVY if name in modules} == ({"tomllib"} if settings else set())


def test_a_reader_that_went_away_and_a_full_disk_end_the_run() -> None:
    """Leaving without freeing everything must not lose what was to be written, or its failure."""
    sample = next((ROOT / "samples" / "workspaces").iterdir())
    line = f'"{sys.executable}" -m policyeng check "{sample}"'
    full = subprocess.run(["bash", "-c", f"{line} > /dev/full"], capture_output=True, text=True, check=False)
    whole = subprocess.run(["bash", "-c", f"{line} --format json | tail -c 2"], capture_output=True, check=False)

    assert full.returncode == 2
    assert "no space left" in full.stderr
    assert whole.stdout.strip() == b"}"


@pytest.mark.parametrize(
    ("line", "at_once"),
    [("check {sample} --format json", True), ("check {sample} --jobs 1", False), ("check nowhere --as-of x", False)],
)
def test_a_line_is_read_once_and_only_a_plain_run_leaves_at_once(
    line: str, at_once: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other runs may have a server of theirs to end."""
    read: list[list[str]] = []
    left: list[int] = []

    def reading(arguments: list[str], environ: dict[str, str]) -> dict[str, object] | None:
        read.append(arguments)
        return plain_check(arguments, environ)

    def leave(code: int) -> None:
        left.append(code)
        raise SystemExit(code)

    words = line.format(sample=ROOT / "samples" / "workspaces" / "compliant.json").split()
    monkeypatch.setattr(cli, "plain_check", reading)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(sys, "argv", ["policyeng", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    capsys.readouterr()

    assert read == [words]
    assert left == ([ended.value.code] if at_once else [])


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["audit", "--help"]])
def test_the_version_and_the_help_of_groups_load_no_command(arguments: list[str]) -> None:
    """Nor does completion of their names, which needs the same."""
    code = f"import sys, policyeng.cli; policyeng.cli.run({arguments}); print(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {name for name in result.stderr.split() if name.startswith("policyeng.")}
    assert "policyeng.cli" in loaded
    assert {name for name in loaded if not name.startswith("policyeng.cli")} <= {
        "policyeng.errors",
        "policyeng._performance",
        "policyeng.later",
        "policyeng.redaction",
        "policyeng.progress",
    }


@pytest.mark.parametrize(("line", "collects"), [("check {sample}", False), ("check {sample} --jobs 1", True)])
def test_only_a_plain_run_collects_no_garbage(line: str, collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other commands may run for long."""
    seen: list[bool] = []
    monkeypatch.setattr("policyeng.cli.report_options.print_parts", lambda *_, **__: seen.append(gc.isenabled()))
    monkeypatch.setattr(os, "_exit", sys.exit)
    words = line.format(sample=ROOT / "samples" / "workspaces" / "compliant.json").split()
    monkeypatch.setattr(sys, "argv", ["policyeng", *words])
    with pytest.raises(SystemExit):
        cli.main()

    assert set(seen) == {collects}
