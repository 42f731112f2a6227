"""What the documents show is executed: commands with their output, Python, Rego, YAML, JSON and TOML."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import typer
from _pytest.mark import ParameterSet

from policyeng.bundle import load_bundle
from policyeng.bundle.manifest import bundle_yaml
from policyeng.cli.app import app
from tests.bundles import write
from tests.command import policyeng
from tests.report_picture import PICTURE, drawn
from tests.warm import write_program

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages that are generated: `test_pages.py` reads their blocks, all in one test.
GENERATED = ROOT / "docs" / "policies"
#: Its commands need the files of the steps before, so that one test runs all of it.
TUTORIAL = ROOT / "docs" / "tutorial-first-policy.md"
#: Where a server of the documents listens.
SERVED = "127.0.0.1:8180"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, *, runs: bool = False) -> list[ParameterSet]:
    """Every fenced block of a language, named by page and line; outside of the README, those that run are slow."""
    found = []
    for page in PAGES:
        if page.parent == GENERATED or (page == TUTORIAL and runs):
            continue
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            if fence[1] == language:
                line = text[: fence.start()].count("\n") + 1
                marks = [pytest.mark.slow] if runs and page.name != "README.md" else []
                found.append(pytest.param(fence[2], marks=marks, id=f"{page.relative_to(ROOT)}:{line}"))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the samples, a user's snapshot and the policy of the README, where the documents' commands run."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    shutil.copy(ROOT / "samples/workspaces/regulated.json", tmp_path / "snapshot.json")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    write(tmp_path, {"my-policies/acme/small/small.rego": next(f[2] for f in FENCE.finditer(readme) if f[1] == "rego")})
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    write_program(binaries / "policyeng")
    return tmp_path


@pytest.mark.parametrize("text", blocks("console", runs=True))
def test_commands_print_what_the_documents_show(text: str, folder: Path) -> None:
    """Lines after `$ ` are run; what follows is what they print, `...` for any lines.

    A line that ends in `&` is a server, which the lines after it call where it listens by default.
    """
    environ = {**os.environ, "PATH": f"{folder / '.venv/bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    run_block(text, folder, environ)


def test_the_tutorial_leads_to_a_policy_that_passes(folder: Path) -> None:
    """Each file is written as shown, and each command prints what is shown, in order."""
    environ = {**os.environ, "PATH": f"{folder / '.venv/bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    page = TUTORIAL.read_text(encoding="utf-8")
    replaced = iter(re.findall(r"^Replace `([^`]+)` with:$", page, re.MULTILINE))
    for fence in FENCE.finditer(page):
        if fence[1] == "console":
            run_block(fence[2], folder, environ)
        else:
            (folder / next(replaced)).write_text(fence[2], encoding="utf-8")
    assert next(replaced, "") == ""
    report = (folder / "findings.csv").read_text(encoding="utf-8")
    assert "ORG-ACME-001,Computes have an owner,medium,pass," in report


def run_block(text: str, folder: Path, environ: dict[str, str]) -> None:
    """Run the commands of a block and compare what they print."""
    address = SERVED
    with ExitStack() as servers:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            if command.endswith(" &"):
                printed = servers.enter_context(serving(command[:-2], folder, environ))
                address = printed.rpartition("/")[2]
            else:
                line = ["sh", "-c", command.replace(SERVED, address)]
                ran = subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, check=False)
                printed = ran.stdout.rstrip("\n") + ran.stderr.rstrip("\n")
            pattern = re.sub(r"\[", "[[]", expected.rstrip("\n")).replace("...", "*")

            assert fnmatch.fnmatchcase(printed.replace(address, SERVED), pattern), printed


@contextmanager
def serving(command: str, folder: Path, environ: dict[str, str]) -> Iterator[str]:
    """What a server prints that listens, on a port that is free."""
    line = ["sh", "-c", f"exec {command} --port 0"]
    with subprocess.Popen(line, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@pytest.mark.parametrize("text", blocks("python"))
def test_python_runs(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python in the documents runs as it is, next to the samples; a policy in it is a policy."""
    monkeypatch.chdir(folder)
    if "@policy" in text:
        assert load_bundle(write(folder / "b", {"area/p/p.py": text})).policies
    else:
        exec(compile(text, "page", "exec"), {"__name__": "page"})  # noqa: S102  # our own documents


@pytest.mark.parametrize("text", blocks("rego"))
def test_rego_is_a_policy(text: str, tmp_path: Path) -> None:
    """Rego in the documents is a policy with a header that compiles."""
    from policyeng.engines.embedded import compile_rego

    bundle = load_bundle(write(tmp_path, {"area/x/x.rego": text}))

    assert bundle.policies
    compile_rego(bundle)


def test_the_cases_of_the_authoring_page_pass(tmp_path: Path) -> None:
    """The policy and the cases that the page shows belong together and pass."""
    from policyeng.testing.runner import run_cases

    page = (ROOT / "docs/policy-authoring.md").read_text(encoding="utf-8")
    shown = {fence[1]: fence[2] for fence in FENCE.finditer(page)}
    write(
        tmp_path,
        {"acme/scale_to_zero/scale_to_zero.rego": shown["rego"], "acme/scale_to_zero/cases.yaml": shown["yaml"]},
    )

    runs = list(run_cases(load_bundle(tmp_path)))

    assert [run.reason for run in runs] == [""] * 6


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_is_read(text: str) -> None:
    """YAML in the documents is what our strict reader takes."""
    assert bundle_yaml(text, "page")


@pytest.mark.parametrize("text", blocks("json"))
def test_json_is_read(text: str) -> None:
    """JSON in the documents is JSON."""
    assert json.loads(text)


@pytest.mark.parametrize("text", blocks("toml"))
def test_toml_is_configuration(text: str, tmp_path: Path) -> None:
    """TOML in the documents is a configuration that is taken."""
    from policyeng.configuration import resolve

    assert tomllib.loads(text)
    write(tmp_path, {"policyeng.toml": text})
    assert resolve({}, {}, tmp_path)


def test_every_link_leads_somewhere() -> None:
    """Relative links of the documents name files that exist."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_picture_is_what_check_prints() -> None:
    """Run `make docs` when it is not."""
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "run `make docs`"


#: The commands, each with the page that has its options.
PAGE_OF = {
    **dict.fromkeys(("admit", "check", "init", "schema", "serve", "test", "verify"), "docs/commands.md"),
    **{f"policies {name}": "docs/commands.md" for name in ("list", "show", "new", "export")},
    **{f"bundle {name}": "docs/bundles.md" for name in ("build", "sign", "verify")},
    **dict.fromkeys(("frameworks list", "frameworks show"), "docs/frameworks.md"),
    "azure-policy coverage": "docs/azure-policy.md",
    **dict.fromkeys(("explain", "eval"), "docs/explain.md"),
    "diff": "docs/comparing.md",
    "snapshot collect": "docs/collecting.md",
    **{f"audit {name}": "docs/audit.md" for name in ("run", "runs", "verify-history", "replay", "evidence", "prune")},
    **{f"audit {name}": "docs/comparing.md" for name in ("history", "ahead", "impact")},
    **{f"audit {name}": "docs/scheduling.md" for name in ("schedule", "notify")},
    **dict.fromkeys(("report", "audit report"), "docs/reports.md"),
}


def test_every_command_has_a_page() -> None:
    """Those that the application knows are those whose options are requested below."""
    application = typer.main.get_command(app)
    groups = {"": application, **getattr(application, "commands", {})}
    known = {f"{group} {name}".strip() for group, of in groups.items() for name in getattr(of, "commands", {})}

    assert known - set(groups) == set(PAGE_OF) - set(groups)
    assert set(PAGE_OF) <= known


@pytest.mark.parametrize("command", PAGE_OF)
def test_every_command_and_option_is_documented(command: str) -> None:
    """A command is on the page of commands; its options are there, on its page, or on one that commands share."""
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shared = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("bundles.md", "opa-server.md"))
    page = (ROOT / PAGE_OF[command]).read_text(encoding="utf-8")
    options = set(
        re.findall(r"^\W*(?:-\w, )?(--[a-z][a-z-]+)", policyeng(*command.split(), "--help").stdout, re.MULTILINE)
    )
    group, _, name = command.rpartition(" ")

    assert options
    assert command in commands or (group in commands and f"`{name}`" in commands)
    assert {option for option in options - {"--help"} if option not in commands + shared + page} == set()
