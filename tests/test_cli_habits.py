"""What users of other command lines type by habit: short options, help, completion, dates and URLs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import typer

from policyeng.cli import run
from policyeng.cli.app import app
from tests.command import policyeng, spawned

BASE = ("check", "samples/workspaces/compliant.json", "--as-of", "2026-06-01T00:00:00Z")


def _commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    yield path, str(getattr(command, "help", ""))
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_a_narrow_terminal_and_its_examples_can_be_copied(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples are printed as written; everything else fits, and no type is written like a placeholder."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*path, "-h"]) == 0
    printed = capsys.readouterr().out.splitlines()
    _, _, examples = inspect.cleandoc(COMMANDS[path]).partition("Examples:\n")
    written = examples.partition("\n\n")[0].splitlines()

    assert [line for line in written if line not in printed] == []
    assert [line for line in printed if len(line) > 80 and line not in written] == []
    assert [line for line in printed if "<bool>" in line or "<list" in line] == []


def test_the_options_of_check_are_in_sections(capsys: pytest.CaptureFixture[str]) -> None:
    """What everybody needs comes first, and what few need comes last."""
    assert run(["check", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sections = ["Input:", "Policies:", "Evaluation:", "Output:", "Exit:", "Signatures:", "OPA:", "Help:"]

    assert [line for line in lines if line in sections] == sections
    assert lines.index("  -f, --format FORMAT       Output format: text, json, sarif, junit, markdown,") < len(lines)


def test_short_options_are_the_long_ones(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`-s -f -o -V`, with the quick parser and without it."""
    monkeypatch.chdir(root)
    long = policyeng(*BASE, "--select", "network", "--format", "json", "--output", f"csv={tmp_path / 'long'}")
    for others in ([], ["--jobs", "1"]):
        short = policyeng(*BASE, "-s", "network", "-f", "json", "-o", f"csv={tmp_path / 'short'}", *others)
        assert orjson.loads(short.stdout) == orjson.loads(long.stdout)
        assert (tmp_path / "short").read_bytes() == (tmp_path / "long").read_bytes()
    assert policyeng("-V").stdout == policyeng("--version").stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("version", "no such command `version`; use `policyeng --version`"),
        ("help", "no such command `help`; use `policyeng --help`"),
        ("scan", "no such command `scan`; use `policyeng check`"),
        ("bundle verify", "missing argument `ARCHIVE`; try `policyeng bundle verify --help`"),
        ("check --jobs many", "unable to parse string as an integer; try `policyeng check --help`"),
        ("check --nothing", "no such option: --nothing; try `policyeng check --help`"),
        ("check a --exemptions nosuch.yaml", "nosuch.yaml: no such exemption file; pass an existing file"),
        ("check a --baseline nosuch.json", "path `nosuch.json` does not exist"),
        ("check a --data nosuch.json", "nosuch.json: the data does not exist"),
        ("check https://a.example/x.json?b=1", "use `curl -fsS 'https://a.example/x.json?b=1' | policyeng check -`"),
        ("diff https://a.example/x.json y.json", "is a URL; inputs are files and directories"),
        ("admit a.json --snapshot http://a.example/x.json", "is a URL"),
    ],
)
def test_a_habit_or_a_mistake_gets_one_line_with_the_remedy(
    line: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3, before anything is read."""
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 3
    printed = capsys.readouterr()

    assert message in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("format_", "content", "message"),
    [
        ("text", "", "the file is empty"),
        ("text", "{}", "unsupported format: an empty object; `policyeng check --from` lists the"),
        ("github", '{"type": "a/b"}', "an object with `type` but no `id`"),
        ("json", "{", "not valid JSON"),
    ],
)
def test_an_unreadable_input_gives_one_message(format_: str, content: str, message: str, tmp_path: Path) -> None:
    """That nothing was evaluated follows from it, and pipelines need no copy on standard error."""
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    ran = policyeng("check", str(path), "-f", format_)
    everything = ran.stdout + ran.stderr

    assert ran.returncode == 2
    assert message in " ".join(everything.split())
    assert "nothing was evaluated" not in everything
    assert format_ != "github" or ran.stderr == ""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("policyeng check --select netw", {"network"}),
        ("policyeng check -s high,AML-NET-00", {"high,AML-NET-001"}),
        ("policyeng check --select mcsb-v1:NS-1", {"mcsb-v1:NS-1"}),
        ("policyeng check --profile doc", {"documents"}),
        ("policyeng check --format sar", {"sarif"}),
        ("policyeng check --output sar", {"sarif="}),
        ("policyeng check --fail-on cri", {"critical"}),
        ("policyeng policies show AML-NET-00", {"AML-NET-001"}),
        ("policyeng audit run prod", {"production"}),
        ("policyeng check --policy broken --select net", set()),
    ],
)
def test_values_are_completed(words: str, offered: set[str], tmp_path: Path) -> None:
    """Ids, areas, controls, formats, profiles and estates; what cannot be read completes nothing, silently."""
    (tmp_path / "policyeng.toml").write_text('[[estates]]\nname = "production"\ninputs = ["a.json"]\n')
    (tmp_path / "broken" / "a" / "b").mkdir(parents=True)
    (tmp_path / "broken" / "a" / "b" / "b.rego").write_text("package {")
    variables = {"_POLICYENG_COMPLETE": "complete_bash", "COMP_WORDS": words}
    ran = spawned(folder=tmp_path, COMP_CWORD=str(len(words.split()) - 1), **variables)

    assert ran.stderr == ""
    assert offered <= set(ran.stdout.split())
    assert bool(offered) == bool(ran.stdout.strip())


@pytest.mark.parametrize(
    ("as_of", "exempt"), [("2026-05-31", False), ("2026-06-01", True), ("2026-12-31", True), ("2027-01-01", False)]
)
def test_a_date_is_its_whole_day(as_of: str, exempt: bool, tmp_path: Path, root: Path) -> None:
    """An exemption counts until the end of `expiresAt` in UTC, and `--as-of` is the end of its day."""
    sample = root / "samples" / "workspaces" / "regulated.json"
    found = orjson.loads(policyeng("check", str(sample), "--as-of", as_of, "-f", "json").stdout)
    failure = next(one for one in found["findings"] if one["outcome"] == "fail")
    entry = {
        "id": "X-1",
        "policy": failure["policy"],
        "scope": failure["resource"],
        "category": "waiver",
        "reason": "a",
        "owner": "a@b.example",
        "approvedBy": "c@b.example",
        "createdAt": "2026-06-01",
        "expiresAt": "2026-12-31",
    }
    path = tmp_path / "exemptions.json"
    path.write_bytes(orjson.dumps({"exemptions": [entry]}))
    again = orjson.loads(
        policyeng("check", str(sample), "--as-of", as_of, "-f", "json", "--exemptions", str(path)).stdout
    )

    marked = [one for one in again["findings"] if one.get("exemption")]
    assert again["asOf"] == f"{as_of}T23:59:59Z"
    assert bool(marked) == exempt
