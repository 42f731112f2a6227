"""What the commands print is what `tests/golden` stores: a change of it shows as a change of these files.

After a change that is meant, `python -m tests.test_golden --write` writes them anew; review what git shows of it. The
store of audits (`audits.db.gz`) is written only where it is missing: it represents those that users have, which later
versions have to read and continue.
"""

from __future__ import annotations

import difflib
import gzip
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
import typer

from policyeng.bundle import load_bundle
from policyeng.cli.app import app
from policyeng.report import FORMATS
from policyeng.server.app import application
from policyeng.server.metrics import ServerMetrics
from tests.command import policyeng
from tests.servers import service_of, setup_of

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
STORE = GOLDEN / "audits.db.gz"
#: Longer outputs are stored as their hash and their first lines.
LONGEST, LINES, COLUMNS = 12_000, 40, 200

#: What differs between runs, between machines, or with each edit of a policy; `scrubbed` adds the folder and digests.
PLACEHOLDERS: Mapping[str, str] = {
    r'("(?:startedAt|finishedAt)": )"[^"]+"': r'\1"<clock>"',
    # Hashes over the times above and over the policies.
    r'("(?:content|expected|hash|previous|head|retention)": )"[0-9a-f]{64}"': r'\1"<hash>"',
    r"((?:content|head|retention) )[0-9a-f]{64}": r"\1<hash>",
    r"(; exit \d  )[0-9a-f]{12}$": r"\1<hash>",
    # How small an archive is depends on the version of zlib.
    r'("bytes": )\d+': r"\1<size>",
    r"(members, )\d+( bytes)": r"\1<size>\2",
}

AT = "--as-of 2026-06-01T00:00:00Z"
_WORKSPACES, _FORMATS = "samples/workspaces", "samples/formats"
_OWN = "--policy inputs/policies"
_STORED = "--store sqlite:///audits.db"
#: The inputs of `check`, with the options that they need; `ALL` is a report in every format.
_CHECKED = {
    **{name: f"{_WORKSPACES}/{name}.json" for name in ("compliant", "inference", "regulated", "training")},
    "exempted": f"{_WORKSPACES}/exempted.json --exemptions samples/exemptions.yaml",
    "configured": f"{_WORKSPACES}/exempted.json --config inputs/policyeng.toml --owner-tag support",
    "baselines": "samples/baselines --show-skipped --jobs 1",
    "arm-template": f"{_FORMATS}/main.json",
    "az-output": f"{_FORMATS}/az-output.json",
    "azure-cli": f"{_FORMATS}/azure-cli",
    "kubernetes": f"{_FORMATS}/manifests.yaml",
    "resource-graph": f"{_FORMATS}/graph.json",
    "terraform": f"{_FORMATS}/plan.json",
    "undecided": f"{_FORMATS}/main.parameters.json",
    "conftest": "samples/conftest/deployments.yaml --policy samples/conftest/policy --data samples/conftest/teams.yaml",
    "own-policies": f"inputs/monday {_OWN}",
}
_SHOWN = ("AML-NET-001", "AML-SKU-104", "AML-INF-101 --profile documents")

#: By the name of its file: the commands of a scene, which run one after the other in one folder.
SCENES: Mapping[str, tuple[str, ...]] = {
    **{f"check-{name}": (f"check {given} {AT} ALL",) for name, given in _CHECKED.items()},
    "check-options": (
        f"check {_WORKSPACES}/regulated.json {AT} --group-by policy --select network,AML-SKU-104 --profile documents",
        f"check {_WORKSPACES}/exempted.json {AT} --no-exemptions --suggest --fail-on critical",
        f"check {_WORKSPACES}/regulated.json {AT} --minimise --select AML-NET-001",
        f"check inputs/monday {_OWN} {AT} --strict-unknown --ignore low,high --output json=before.json",
        f"check inputs/tuesday {_OWN} {AT} --baseline before.json",
        f"check missing.json {AT}",
        f"check {_WORKSPACES}/regulated.json {AT} --fail-on higher",
        "check --from list",
    ),
    "admit": tuple(
        f"admit {given} {AT} --format {format_}"
        for given in (
            f"inputs/changes/changes.yaml --snapshot {_WORKSPACES}/compliant.json",
            f"{_FORMATS}/plan.json --snapshot {_WORKSPACES}/compliant.json",
            f"inputs/changes/what-if.json --snapshot inputs/monday {_OWN} --blame introduced --standing",
            f"inputs/changes/harmless.yaml --snapshot inputs/monday {_OWN}",
            f"inputs/tuesday --whole --snapshot inputs/monday {_OWN}",
        )
        for format_ in ("text", "json")
    ),
    "diff": tuple(
        f"diff {given} --format {format_}"
        for given in (
            f"inputs/monday inputs/tuesday {_OWN} {AT}",
            f"inputs/monday inputs/tuesday {_OWN} {AT} --parts",
            f"inputs/monday inputs/monday {_OWN} --as-of-before 2026-06-01T00:00:00Z --as-of 2026-07-01T00:00:00Z",
            f"{_WORKSPACES}/compliant.json {_WORKSPACES}/regulated.json {AT} --select network --no-causes",
        )
        for format_ in ("text", "json", "markdown")
    ),
    "policies": (
        "policies list",
        "policies list --format json",
        f"policies list --format markdown {_OWN}",
        "policies list --profiles",
        "policies list --profiles --format json",
        *(f"policies show {each} --format {format_}" for each in _SHOWN for format_ in ("text", "json", "markdown")),
        f"policies show G-TAG-001 {_OWN}",
        f"policies list {_OWN} --format markdown --output out",
    ),
    "bundle": (
        f"bundle build {_OWN} --output bundle.tar.gz --format json",
        f"bundle build {_OWN} --revision 7 --output bundle.tar.gz",
        "bundle verify bundle.tar.gz",
        f"check inputs/monday --policy bundle.tar.gz {AT} --format json",
        f"test {_OWN}",
    ),
    "audit": (
        f"audit run --input inputs/monday --estate production {_OWN} {AT} {_STORED}",
        f"audit run --input inputs/tuesday --estate production {_OWN} --as-of 2026-06-02T00:00:00Z {_STORED}"
        " --format json",
        f"audit run --input {_WORKSPACES}/exempted.json --estate lab {_OWN} --as-of 2026-06-03T00:00:00Z {_STORED}",
        *(f"audit runs {_STORED} --format {format_}" for format_ in ("text", "json")),
        *(
            f"audit report production {_STORED} --format {format_}"
            for format_ in ("html", "csv", "csv-bom", "json", "markdown", "text")
        ),
        *(f"audit history {_STORED} --format {format_}" for format_ in ("text", "json", "csv", "markdown")),
        *(f"audit history {_STORED} --run 2 --format {format_}" for format_ in ("text", "json")),
        f"audit history {_STORED} production --resource alpha",
        *(
            f"audit ahead production {_STORED} --since 2026-06-02 --days 90 --format {format_}"
            for format_ in ("text", "json", "csv", "markdown")
        ),
        *(
            f"audit impact production {_STORED} --policy inputs/policies --ignore G-NET-001 --runs 2 --format {format_}"
            for format_ in ("text", "json", "csv", "markdown")
        ),
        *(f"audit verify-history {_STORED} --format {format_}" for format_ in ("text", "json")),
        *(f"audit replay 2 {_STORED} --format {format_}" for format_ in ("text", "json")),
        f"audit prune {_STORED} --keep-runs 1",
        f"audit verify-history {_STORED}",
    ),
    "audit-stored": (
        f"audit verify-history {_STORED}",
        f"audit runs {_STORED} --format json",
        f"audit replay 1 {_STORED}",
        f"audit replay 2 {_STORED}",
        f"audit history {_STORED} --format json",
        f"audit report {_STORED} --format json",
        f"audit run --input inputs/monday --estate production {_OWN} --as-of 2026-06-03T00:00:00Z {_STORED}",
        f"audit history {_STORED}",
        f"audit verify-history {_STORED}",
    ),
}
#: The commands that made the store.
_MADE = SCENES["audit"][:2]


def prepared(folder: Path) -> Path:
    """Copy what the commands read into a folder."""
    shutil.copytree(ROOT / "samples", folder / "samples")
    shutil.copytree(GOLDEN / "inputs", folder / "inputs", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "out").mkdir()
    if STORE.exists():
        (folder / "stored.db").write_bytes(gzip.decompress(STORE.read_bytes()))
    return folder


def transcript(name: str, folder: Path) -> str:
    """Run the commands of a scene: what each prints and writes, and its exit code."""
    return "".join(_parts(name, prepared(folder)))


def _parts(name: str, folder: Path) -> Iterator[str]:
    if name == "audit-stored":
        (folder / "stored.db").rename(folder / "audits.db")
    for command in SCENES[name]:
        outputs = " ".join(f"--output {each}=out/{each}" for each in FORMATS)
        ran = policyeng(*shlex.split(command.replace("ALL", outputs)), folder=folder)
        yield f"$ policyeng {command}\nexit {ran.returncode}\n"
        yield section("output", ran.stdout, folder)
        yield section("errors", ran.stderr, folder)
        for path in sorted((folder / "out").iterdir()):
            yield section(path.name, path.read_bytes().decode(), folder)
            path.unlink()


def section(title: str, text: str, folder: Path) -> str:
    """One output below its title: as it is, or the hash of it and the first lines."""
    if not text:
        return ""
    text = scrubbed(text, folder).rstrip("\n").replace("\r\n", "\\r\n")
    if len(text) > LONGEST:
        first = "\n".join(line[:COLUMNS] for line in text.split("\n")[:LINES])
        text = f"sha256 {sha256(text.encode()).hexdigest()} of {len(text)} characters, which begin:\n{first}"
    return f"--- {title}\n{text}\n"


def scrubbed(text: str, folder: Path) -> str:
    """Put placeholders where text is random or of this machine."""
    text = text.replace(str(folder), "<folder>")
    for digest in digests():
        text = text.replace(digest, "<policies>").replace(digest[:12], "<policies>")
    for digest in contents(folder / "audits.db"):
        text = text.replace(digest, "<hash>")
    for pattern, placeholder in PLACEHOLDERS.items():
        text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
    return text


@cache
def digests() -> list[str]:
    """Compute the digests of all policies that the commands use; each is also over what comes with the engine."""
    own = load_bundle(GOLDEN / "inputs" / "policies"), load_bundle(ROOT / "samples" / "conftest" / "policy")
    return [load_bundle().digest, *(bundle.digest for bundle in own)]


def contents(store: Path) -> list[str]:
    """Read the hashes of what runs found, which are also over the code of the engine."""
    if not store.exists():
        return []
    with closing(sqlite3.connect(store)) as connection:
        return [orjson.loads(run)["content"] for (run,) in connection.execute("SELECT document FROM runs")]


def commands(_: Path) -> str:
    """List every command with its arguments, options and variables."""

    def lines(command: object, name: str) -> Iterator[str]:
        yield name
        for parameter in getattr(command, "params", ()):
            is_argument = parameter.param_type_name == "argument"  # its name in Python is shown nowhere
            names = [parameter.metavar] if is_argument else sorted([*parameter.opts, *parameter.secondary_opts])
            required, several = parameter.required, parameter.multiple or parameter.nargs != 1
            marks = [parameter.envvar or "", "required" * required, "repeatable" * several]
            yield "  ".join(filter(None, ["  " + ", ".join(names), *marks]))
        for below, each in sorted(getattr(command, "commands", {}).items()):
            yield from lines(each, f"{name} {below}")

    return "\n".join(lines(typer.main.get_command(app), "policyeng")) + "\n"


def openapi(folder: Path) -> str:
    """Print the OpenAPI document of a server with tokens, metrics and no state."""
    tokens = folder / "tokens"
    tokens.write_text(f"all check,admit,metrics sha256:{'0' * 64}\n")
    service = service_of(setup_of(folder), tokens=tokens)
    service.metrics = ServerMetrics()
    document = application(service).openapi()
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode() + "\n"


#: By the name of a file, its expected content.
GOLDENS: Mapping[str, Callable[[Path], str]] = {
    "commands.txt": commands,
    "openapi.json": openapi,
    **{f"{name}.txt": partial(transcript, name) for name in SCENES},
}


@pytest.mark.parametrize("name", GOLDENS)
def test_outputs_are_the_stored_ones(name: str, tmp_path: Path) -> None:
    """The commands print and write what they did when the file was written."""
    stored = (GOLDEN / name).read_text("utf-8").splitlines()
    now = GOLDENS[name](tmp_path).splitlines()
    changes = [*difflib.unified_diff(stored, now, "stored", "now", lineterm="", n=1)] if stored != now else []

    assert not changes, "\n".join([f"{name}; if it is meant: python -m tests.test_golden --write", *changes[:60]])


def test_every_stored_output_is_compared() -> None:
    """No file is left behind, and together they stay small."""
    files = [path for path in GOLDEN.iterdir() if path.is_file()]

    assert {path.name for path in files} == {*GOLDENS, STORE.name}
    assert sum(path.stat().st_size for path in files) < 1_500_000


def write() -> None:
    """Write the files again, and the store of audits where it is missing."""
    if not STORE.exists():
        folder = Path(tempfile.gettempdir(), "golden")  # the store has its name
        folder.mkdir()
        prepared(folder)
        for command in _MADE:
            policyeng(*shlex.split(command), folder=folder)
        STORE.write_bytes(gzip.compress((folder / "audits.db").read_bytes(), mtime=0))
        shutil.rmtree(folder)
    for name, made in GOLDENS.items():
        with tempfile.TemporaryDirectory() as temporary:
            (GOLDEN / name).write_text(made(Path(temporary)), "utf-8", newline="\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.test_golden --write")
    write()
