"""The command line as users meet it: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

from policyeng.cli import run
from policyeng.cli.app import app
from policyeng.cli.console import print_line
from policyeng.report import PROFILED
from policyeng.sources import FORMATS
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.command import policyeng, spawned

AT = ("--as-of", "2026-06-01T00:00:00Z")


def file(folder: Path, *resources: object, name: str = "snapshot.json") -> str:
    """A snapshot file with resources."""
    path = folder / name
    path.write_text(json.dumps({"snapshotVersion": 1, "resources": resources}), encoding="utf-8")
    return str(path)


@pytest.fixture
def failing(tmp_path: Path) -> tuple[str, str]:
    """A policy directory with one policy, and a snapshot whose workspace `b` fails it."""
    policies = write(tmp_path / "policies", {"area/a/a.rego": rego("a", deny_when("input.resource.properties.n > 1"))})
    return str(policies), file(tmp_path, workspace("a", n=1), workspace("b", n=2))


@pytest.mark.parametrize(
    ("sample", "code"), [("compliant", 0), ("regulated", 1), ("inference", 1), ("training", 1), ("exempted", 1)]
)
def test_the_sample_workspaces_exit_as_they_are_named(root: Path, sample: str, code: int) -> None:
    """A compliant workspace exits 0, one with mistakes 1; none has an error."""
    ran = spawned("check", str(root / f"samples/workspaces/{sample}.json"), *AT, "--format", "json")
    report = json.loads(ran.stdout)

    assert (ran.returncode, report["exitCode"]) == (code, code)
    assert report["summary"]["error"] == 0
    assert ran.stderr == ""


def test_only_exemptions_make_the_exempted_sample_green(root: Path) -> None:
    """With its exemptions it exits 0 and still shows the failures; without them it exits 1."""
    given = (
        "check",
        str(root / "samples/workspaces/exempted.json"),
        *AT,
        "--exemptions",
        str(root / "samples/exemptions.yaml"),
    )

    green = policyeng(*given, "--format", "json")
    summary = json.loads(green.stdout)["summary"]

    assert green.returncode == 0
    assert summary["fail"] == summary["exempt"] == 3
    assert policyeng(*given, "--no-exemptions").returncode == 1
    assert policyeng(*given, "--as-of", "2027-06-01T00:00:00Z").returncode == 1


@pytest.mark.slow
def test_standard_input_is_an_input(failing: tuple[str, str]) -> None:
    """`-` reads a snapshot from a pipe."""
    policies, path = failing

    ran = spawned("check", "-", "--policy", policies, stdin=Path(path).read_text(encoding="utf-8"))

    assert ran.returncode == 1
    assert "<stdin>" in ran.stdout


def test_an_unreadable_input_never_hides_the_others(failing: tuple[str, str], tmp_path: Path) -> None:
    """Exit 2, the unreadable file named with its line, and the findings of the other still there."""
    policies, path = failing
    broken = tmp_path / "broken.json"
    broken.write_text('{"a": 1,\n "a": 2}', encoding="utf-8")

    ran = policyeng("check", str(broken), path, "--policy", policies)

    assert ran.returncode == 2
    assert f"{broken}:2" in ran.stdout
    assert "T-A-1" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "x.json", "--select", "AML-NET-0001"), "did you mean `AML-NET-001`"),
        (("check", "x.json", "--ignore", "netwrk"), "did you mean `network`"),
        (("check", "x.json", "--format", "jsn"), "did you mean `json`"),
        (("check", "x.json", "--from", "nativ"), "did you mean `native`"),
        (("check", "x.json", "--fail-on", "hgh"), "invalid value `hgh` for `fail_on`; did you mean `high`"),
        (("check", "x.json", "--as-of", "tomorrow"), "is not a valid time for --as-of"),
        (("check", "x.json", "--engine", "opal"), "unknown engine `opal`"),
        (("check", "x.json", "--output", "sarif"), "not FORMAT=PATH"),
        (("check", "x.json", "--output", "json= "), "not FORMAT=PATH"),
        (("check", "x.json", "--output", "json=-"), "or `--format` to print"),
        (("check", "x.json", "--policy", "nowhere"), "path `nowhere` does not exist; try `policyeng check --help`"),
        (("check", "x.json", "--fail_on", "low"), "--fail-on"),
        (("check", "x.json", "--config", "nowhere.toml"), "no such configuration file"),
        (("check", ""), "is empty"),
        (("check", "x.json", "--select", ","), "is empty"),
        (("policies", "list", "--select", ""), "is empty"),
        (("policies", "list", "--ignore", " , "), "is empty"),
        (("test", "--select", ""), "is empty"),
        (("check", "x.json", "--select", "hihg"), "no policy id, area, control or severity; did you mean `high`"),
        (
            ("check", "x.json", "--profile", "azureml-v3"),
            "did you mean `azureml-v2`; the profiles are azureml-v2, documents",
        ),
        (("policies", "show", "AML-NET-001", "--profile", "azureml-v3"), "did you mean `azureml-v2`"),
        (("check", "x.json", "--group-by", "resources"), "did you mean `resource`; choose from resource, policy"),
        (("check", "x.json", "--group-by", "policy", "--format", "json"), "does not apply to json; use it with text"),
        (("check", "x.json", "--as-of", "9999-12-31T23:59:59-23:00"), "out of range"),
        (("chek",), "chek"),
        (("policies", "show", "AML-NET-0001"), "did you mean `AML-NET-001`"),
        (("policies", "list", "--format", "xml", "--select", "NOPE-1"), "unknown format `xml`"),
        (("policies", "show", "AML-NET-001", "--format", "xml"), "unknown format `xml`"),
        (("policies", "list", "--format", "markdwn"), "did you mean `markdown`"),
        (("policies", "list", "--output", "pages"), "add `--format markdown`"),
        (("policies", "list", "--format", "markdown", "--output", "x.json"), "not a directory"),
    ],
)
def test_a_wrong_use_exits_3_and_suggests_what_was_meant(arguments: tuple[str, ...], message: str, root: Path) -> None:
    """Options, ids, formats and values that do not exist are usage errors with the nearest name."""
    files = {"x.json": str(root / "samples/workspaces/compliant.json")}

    ran = policyeng(*(files.get(argument, argument) for argument in arguments))

    assert ran.returncode == 3, ran.stderr
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def commands(group: object = None, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command by its words."""
    for name, command in (group or typer.main.get_command(app)).commands.items():  # type: ignore[attr-defined]  # both are groups
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield (*names, name), command


@pytest.mark.parametrize("blank", ["", " \t"])
def test_no_option_of_any_command_may_be_blank(blank: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a path it would be the current directory, whose Python would be run."""
    monkeypatch.chdir(write(tmp_path, {"area/a/a.py": "raise SystemExit(9)\n"}))
    refused = 0
    for words, command in commands():
        for option in (parameter for parameter in command.params if not parameter.opts[0].startswith("--no-")):
            if not getattr(option, "is_flag", False) and not getattr(option, "count", False):
                given = [f"{option.opts[0]}={blank}"] if option.opts[0].startswith("-") else [blank]
                with redirect_stderr(StringIO()) as stderr:
                    assert run([*words, *given]) == 3
                assert "option value is empty" in stderr.getvalue(), (words, given)
                refused += 1
    assert refused > 80


def test_a_blank_variable_is_no_option_and_a_blank_part_of_one_is_refused(failing: tuple[str, str]) -> None:
    """An empty variable is none, as everywhere; an empty directory in a list of them would be the current one."""
    assert policyeng("check", failing[1], "--policy", failing[0], POLICYENG_BASELINE="").returncode == 1
    for variable in (f"{failing[0]}{os.pathsep}", " "):
        ran = policyeng("check", failing[1], POLICYENG_POLICY=variable)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert "option value is empty" in ran.stderr


def test_a_missing_file_and_nothing_to_evaluate_exit_2(tmp_path: Path) -> None:
    """What cannot be decided is never compliant."""
    missing = policyeng("check", str(tmp_path / "nowhere.json"))
    empty = policyeng("check", file(tmp_path))

    assert (missing.returncode, empty.returncode) == (2, 2)
    assert "nowhere.json" in missing.stdout
    assert "nothing was evaluated" in empty.stdout


def test_configuration_environment_and_flags_in_their_order(failing: tuple[str, str], tmp_path: Path) -> None:
    """The file is overridden by the environment, and that by a flag."""
    policies, path = failing
    (tmp_path / "policyeng.toml").write_text('fail_on = "critical"\n', encoding="utf-8")
    given = ("check", path, "--policy", policies)

    assert policyeng(*given, folder=tmp_path).returncode == 0
    assert policyeng(*given, folder=tmp_path, POLICYENG_FAIL_ON="high").returncode == 1
    assert policyeng(*given, "--fail-on", "critical", folder=tmp_path, POLICYENG_FAIL_ON="high").returncode == 0
    misspelt = policyeng(*given, folder=tmp_path, POLICYENG_FAIL_OM="high")
    assert misspelt.returncode == 0
    assert "unknown variable, ignored; did you mean `POLICYENG_FAIL_ON`" in misspelt.stderr


def test_parameters_for_a_policy_that_does_not_exist_are_refused(failing: tuple[str, str], tmp_path: Path) -> None:
    """A misspelt id in the configuration is not left alone."""
    (tmp_path / "policyeng.toml").write_text('[parameters."T-A-2"]\nx = 1\n', encoding="utf-8")

    ran = policyeng("check", failing[1], "--policy", failing[0], folder=tmp_path)

    assert ran.returncode == 3
    assert "did you mean `T-A-1`" in ran.stderr


@pytest.mark.parametrize("command", [("policies", "list"), ("policies", "list", "--format", "json"), ("test",)])
def test_where_no_policy_is_left_nothing_can_be_decided(failing: tuple[str, str], command: tuple[str, ...]) -> None:
    """Exit 2, as a run has that evaluates nothing; a directory without policies is listed as what it is."""
    given = ("--policy", failing[0], "--select", "high", "--ignore", "T-A-1")
    left, checked = policyeng(*command, *given), policyeng("check", failing[1], *given)

    assert (left.returncode, left.stdout) == (2, "")
    assert "no policy is left after `--select` and `--ignore`; change one of them" in left.stderr
    assert checked.returncode == 2
    assert "nothing was evaluated" in checked.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "x", "--select", "HOSTILE"),
        ("check", "x", "--policy", "HOSTILE"),
        ("check", "x", "--HOSTILE"),
        ("HOSTILE",),
        ("check", "HOSTILE", "--format", "json"),
        ("policies", "show", "HOSTILE"),
    ],
)
def test_what_the_user_wrote_is_shown_and_not_obeyed(arguments: tuple[str, ...]) -> None:
    """A terminal gets no control character, a build agent no command, and a reader no page of one letter."""
    hostile = "\x1b]0;x\x07\u202e##vso[x]y" + ("z" * 200 + "/") * 9
    ran = policyeng(*(word.replace("HOSTILE", hostile) for word in arguments))

    assert ran.stderr.replace("\n", "").isprintable()
    assert re.search(r"\\(u00|x)1b\]0;x\\(u00|x)07", ran.stderr)
    assert "##vso[" not in ran.stderr
    assert len(ran.stderr) < 1000


def test_messages_of_usual_length_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Text between two quoted words is no quoted word, and lines stay lines."""
    text = f"`a` {'word ' * 99}`b`\n\t`{'c' * 200}`"
    print_line(text, error=True)
    print_line(f"`{'d' * 400}` {'e' * 400} \x1b", error=True)

    assert capsys.readouterr().err == f"{text}\n`{'d' * 149}…` {'e' * 150}… \\u001b\n"


def test_what_is_chosen_by_name_is_so_in_any_letters(failing: tuple[str, str], tmp_path: Path) -> None:
    """Formats, groupings, engines and severities."""
    policies, path = failing
    given = ("check", path, "--policy", policies, *AT, "--engine", "Embedded", "--from", "Native")
    ran = policyeng(*given, "--format", "Markdown", "--group-by", "Policy", "--fail-on", "HIGH")
    plain = policyeng(
        *given[:-2],
        "--format",
        "markdown",
        "--group-by",
        "policy",
        "--fail-on",
        "high",
        "--output",
        f"JSON={tmp_path / 'r'}",
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (1, plain.stdout, "")
    assert policyeng("policies", "list", "--policy", policies, "--format", "JSON").stdout.startswith("[")
    assert json.loads((tmp_path / "r").read_text(encoding="utf-8"))


@pytest.mark.parametrize("others", [[], ["--from", "native"], ["--jobs", "1"]])
def test_a_check_without_input_is_of_the_current_directory(
    others: list[str], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With and without the quick parser."""
    (tmp_path / "a.json").write_bytes((root / "samples/workspaces/compliant.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    ran = [(run(["check", *given, *AT, *others]), capsys.readouterr().out) for given in ([], ["."])]

    assert ran[0] == ran[1]
    assert ran[0][0] == 0


@pytest.mark.parametrize("arguments", [["--from"], ["--from", "list"], ["--from=list"]])
def test_the_input_formats_are_listed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each, with what it looks like, in the order in which content is looked at."""
    assert run(["check", *arguments]) == 0

    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert lines == [[name, each.SUMMARY] for name, each in FORMATS.items()]
    assert all("\n" not in summary for _, summary in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{path}", "--from"], "requires an argument"),
        (["{path}", "--from="], "is empty"),
        (["{path}", "--from", "list"], "unknown input format `list`; choose from native, "),
        (["--from", "--format", "json"], "unknown input format `--format`"),
        (["{path}", "--from", "nativ"], "unknown input format `nativ`; did you mean `native`"),
    ],
)
def test_nothing_is_listed_instead_of_evaluated(
    arguments: list[str], message: str, failing: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What an empty shell variable leaves of `--from "$X"` does not end a run with 0."""
    assert run(["check", *(word.format(path=failing[1]) for word in arguments)]) == 3

    assert message in capsys.readouterr().err


def test_reports_name_the_profile(root: Path, tmp_path: Path) -> None:
    """Those that have a place for it."""
    given = ("check", str(root / "samples/workspaces/compliant.json"), *AT, "--profile", "azureml-v2")
    outputs = [word for name in PROFILED for word in ("--output", f"{name}={tmp_path / name}")]
    policyeng(*given, *outputs)

    for name in PROFILED:
        assert "azureml-v2" in (tmp_path / name).read_text(encoding="utf-8"), name


def test_reports_go_to_files_in_addition_to_what_is_printed(failing: tuple[str, str], tmp_path: Path) -> None:
    """`--output` can be repeated, and a baseline made that way silences what it knows."""
    policies, path = failing
    report = tmp_path / "report.json"
    given = ("check", path, "--policy", policies)

    policyeng(*given, "--output", f"json={report}", "--output", f"junit={tmp_path / 'junit.xml'}")
    again = policyeng(*given, "--baseline", str(report))

    assert (tmp_path / "junit.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert again.returncode == 0
    assert "are in the baseline" in again.stdout


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_reports_for_people_are_grouped(failing: tuple[str, str], tmp_path: Path, name: str) -> None:
    """What is printed, and what is written in addition to a report for a machine."""
    policies, path = failing
    given = ("check", path, "--policy", policies, *AT, "--group-by", "policy")
    printed = policyeng(*given, "--format", name)
    second = policyeng(*given, "--format", "json", "--output", f"{name}={tmp_path / 'report'}")
    from_environment = policyeng(*given[:-2], "--format", name, POLICYENG_GROUP_BY="policy")

    assert (printed.returncode, second.returncode) == (1, 1)
    assert printed.stdout == from_environment.stdout == (tmp_path / "report").read_text(encoding="utf-8")
    assert re.search(r"^(### )?high +(<code>)?T-A-1", printed.stdout, re.MULTILINE)


def test_policies_are_listed_and_shown() -> None:
    """The list names the language of each policy; a page shows its fields."""
    assert policyeng("policies", "list", "--select", "AML-NET-001").stdout.splitlines()[-1].startswith("1 policy, ")
    listed = policyeng("policies", "list")
    shown = policyeng("policies", "show", "aml-net-001")
    described = json.loads(policyeng("policies", "list", "--format", "json").stdout)

    assert listed.returncode == shown.returncode == 0
    assert {"rego", "python"} <= set(re.split(r"\s+", listed.stdout))
    assert "/properties/publicNetworkAccess" in shown.stdout
    assert len(described) == len(listed.stdout.splitlines()) - 1


def test_the_columns_of_the_list_are_as_wide_as_their_content(tmp_path: Path) -> None:
    """Ids of any length leave the titles below each other, and control characters do nothing."""
    other = rego("b", deny_when("true"), identity="A-MUCH-LONGER-ID-17", severity="low").replace("b holds", '"b\\e[1m"')
    files = {"area/a/a.rego": rego("a", deny_when("true")), "area/b/b.rego": other}
    listed = policyeng("policies", "list", "--policy", str(write(tmp_path, files))).stdout.splitlines()

    assert listed[:2] == ["A-MUCH-LONGER-ID-17  low   rego  b\\u001b[1m", "T-A-1                high  rego  a holds"]


def test_policies_have_pages_in_markdown(tmp_path: Path) -> None:
    """The index, one page, and a directory of both, where a policy that is gone leaves nothing behind."""
    files = {
        "area/a/a.rego": rego("a", deny_when("true")),
        "area/b/b.rego": rego("b", deny_when("true"), identity="B-1"),
    }
    given = ("--policy", str(write(tmp_path / "p", files)), "--format", "markdown")
    pages = ("policies", "list", *given, "--output", str(tmp_path / "pages"))
    index = policyeng("policies", "list", *given).stdout
    page = policyeng("policies", "show", "b-1", *given).stdout
    written = policyeng(*pages, folder=tmp_path)
    again = policyeng(*pages, "--ignore", "B-1", folder=tmp_path)

    assert "| T-A-1 | a holds | high | Rego |  |" in index
    assert page.startswith("# B-1: b holds\n")
    assert written.stdout == f"{tmp_path / 'pages'}: 3 pages: 3 written, 0 unchanged, 0 removed\n"
    assert again.stdout == f"{tmp_path / 'pages'}: 2 pages: 1 written, 1 unchanged, 1 removed\n"
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == ["README.md", "T-A-1.md"]
    assert "[`area/a/a.rego`](../p/area/a/a.rego)" in (tmp_path / "pages" / "T-A-1.md").read_text(encoding="utf-8")


def test_cases_are_run_and_counted(tmp_path: Path) -> None:
    """A failing case fails the command, is named with its reason, and is in the JUnit report."""
    edit = "{patch: {properties: {n: 1}}"
    cases = "baseline: workspace\nabsent: {/properties/n: pass}\n"
    cases += f"pass:\n  good: {edit}}}\nfail:\n  bad: {edit}, path: /x}}\n"
    policies = write(
        tmp_path, {"area/a/a.rego": rego("a", deny_when("input.resource.properties.n > 1")), "area/a/cases.yaml": cases}
    )

    ran = policyeng("test", "--policy", str(policies), "--junit", str(tmp_path / "junit.xml"))

    assert ran.returncode == 1
    assert "FAIL T-A-1 bad: expected fail, found pass" in ran.stdout
    assert ran.stdout.endswith("2 passed, 1 failed\n")
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")


def test_no_cases_are_no_success(failing: tuple[str, str]) -> None:
    """A bundle without a case exits 2."""
    ran = policyeng("test", "--policy", failing[0])

    assert ran.returncode == 2
    assert "no test cases found" in ran.stderr


@pytest.mark.parametrize(
    "command",
    [(), ("check",), ("test",), ("policies",), ("policies", "list"), ("policies", "show"), ("policies", "new")],
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    """`--help` works everywhere and names the exit codes at the top."""
    ran = policyeng(*command, "--help")

    assert ran.returncode == 0
    assert "Usage: policyeng" in ran.stdout
    assert command or "Exit codes" in ran.stdout


def test_an_interrupt_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that the user ended reports it and exits as shells expect; typer alone would leave without a word."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("policyeng.verify.runner.run", interrupted)

    assert run(["verify", "--law", "order", "--examples", "1", "--no-database"]) == 130
    assert capsys.readouterr() == ("", "policyeng: interrupted\n")


def test_completion_is_offered() -> None:
    """Shell completion can be printed."""
    # Otherwise typer looks for the shell among the processes above this one, where there may be none.
    named = spawned("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "policyeng" in named.stdout


def test_checking_imports_only_what_it_uses(failing: tuple[str, str]) -> None:
    """The cold start does not pay for libraries that the run has no use for."""
    program = (
        "import sys; from policyeng.cli import run; run(sys.argv[1:]);"
        "print(sorted({'rich', 'jsonschema', 'hypothesis', 'policyeng.verify'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "check", failing[1], "--policy", failing[0]],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stderr.strip() == "[]"


def test_a_snapshot_of_the_interface_is_that_of_the_library(failing: tuple[str, str]) -> None:
    """Law 13 for the paths that exist: the command and the in-process call give the same findings."""
    import policyeng as library

    policies, path = failing
    bundle, given = library.load_bundle(policies), library.load_snapshot(path)
    from datetime import UTC, datetime

    evaluation = library.evaluate(bundle, given, as_of=datetime(2026, 6, 1, tzinfo=UTC))
    away = Path(path).parent  # without a configuration
    printed = json.loads(policyeng("check", path, "--policy", policies, *AT, "--format", "json", folder=away).stdout)

    assert printed == json.loads(evaluation.model_dump_json(by_alias=True))
    assert snapshot(*given.resources).resources == given.resources


def test_the_sample_configuration_is_one(root: Path) -> None:
    """Its exemptions are found next to it, its parameters exist, and with it the exempted sample is green."""
    ran = policyeng(
        "check",
        str(root / "samples/workspaces/exempted.json"),
        "--config",
        str(root / "samples/policyeng.toml"),
        *AT,
        "--format",
        "json",
    )
    report = json.loads(ran.stdout)

    assert ran.returncode == 0, ran.stderr
    assert report["summary"]["exempt"] == 3  # one for each entry of exemptions.yaml
    assert {"AML-NET-104", "AML-SKU-107"} & {finding["policy"] for finding in report["findings"]} == {"AML-NET-104"}


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "| head -1 >/dev/null; exit ${PIPESTATUS[0]}", ">/dev/full"])
def test_a_reader_that_goes_away_is_no_traceback(failing: tuple[str, str], redirection: str) -> None:
    """Closed and broken outputs end the run with one of our exit codes."""
    policies, path = failing
    command = f'"{sys.executable}" -m policyeng check "{path}" --policy "{policies}" {redirection}'

    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )

    assert ran.returncode in (1, 2), ran.stderr
    assert "Traceback" not in ran.stderr
    assert "internal error" not in ran.stderr
