"""Every report names the active configuration, and what it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.configuration import Settings, resolve
from policyeng.context import describe_settings
from policyeng.models import AppliedSettings, SettingChange
from policyeng.report import FORMATS
from policyeng.report.phrases import settings_text
from policyeng.sources import excluded
from tests.command import ROOT, policyeng

SNAPSHOT = str(ROOT / "samples" / "workspaces" / "training.json")
CLOCK = ("--as-of", "2026-06-01T00:00:00Z")
CONFIGURATION = 'ignore = ["AML-NET-001"]\nfail_on = "critical"\n\n[parameters."AML-SKU-102"]\napiKey = "hunter2"\n'
READABLE = [name for name in FORMATS if not name.startswith("csv")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a configuration that weakens a run."""
    (tmp_path / "policyeng.toml").write_text('ignore = ["AML-NET-001"]\nfail_on = "critical"\n', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", READABLE)
def test_every_report_states_what_the_configuration_changed(folder: Path, name: str) -> None:
    """The file with what it set, and the variables of the environment with theirs."""
    ran = policyeng("check", SNAPSHOT, *CLOCK, "--format", name, folder=folder, POLICYENG_SELECT="training")

    shown = ran.stdout.replace("&#95;", "_").replace("&#45;", "-")
    if name in ("json", "sarif"):
        document = json.loads(shown)
        settings = document["settings"] if name == "json" else document["runs"][0]["properties"]["settings"]
        assert settings == {
            "file": "policyeng.toml",
            "environment": ["POLICYENG_SELECT"],
            "changes": [
                {"setting": "fail_on", "value": "critical", "origin": "policyeng.toml:2"},
                {"setting": "ignore", "value": ["AML-NET-001"], "origin": "policyeng.toml:1"},
                {"setting": "select", "value": ["training"], "origin": "environment POLICYENG_SELECT"},
            ],
        }
    else:
        joined = " ".join(shown.split())
        assert "policyeng.toml (fail_on critical, ignore AML-NET-001); POLICYENG_SELECT (select training)" in joined


@pytest.mark.parametrize("name", READABLE)
def test_without_a_configuration_reports_for_people_are_silent(tmp_path: Path, name: str) -> None:
    """The JSON forms state that there was none; a flag is on the command line, and in them."""
    ran = policyeng("check", SNAPSHOT, *CLOCK, "--format", name, "--fail-on", "high", folder=tmp_path)

    if name == "json":
        assert json.loads(ran.stdout)["settings"] == {
            "file": "",
            "environment": [],
            "changes": [{"setting": "fail_on", "value": "high", "origin": "flag --fail-on"}],
        }
    elif name not in ("sarif", "junit"):
        assert "fail_on" not in ran.stdout
        assert "settings:" not in ran.stdout.lower()
        assert "<dt>Settings" not in ran.stdout


def test_an_option_of_the_environment_is_named_where_it_is_in_force(tmp_path: Path) -> None:
    """One that a flag overrides, or that the command does not have, is not; values of parameters are masked."""
    environ = {
        "POLICYENG_ENGINE": "embedded",
        "POLICYENG_PARAMETERS": "adminName=hunter2",
        "POLICYENG_OWNER_TAG": "team",
        "POLICYENG_SNAPSHOT": "unused.json",
    }
    ran = policyeng("check", SNAPSHOT, *CLOCK, "--format", "json", "--owner-tag", "owner", folder=tmp_path, **environ)

    assert json.loads(ran.stdout)["settings"] == {
        "file": "",
        "environment": ["POLICYENG_ENGINE", "POLICYENG_PARAMETERS"],
        "changes": [
            {"setting": "engine", "value": "embedded", "origin": "environment POLICYENG_ENGINE"},
            {
                "setting": "template parameters",
                "value": ["adminName=***"],
                "origin": "environment POLICYENG_PARAMETERS",
            },
        ],
    }
    after = policyeng("check", SNAPSHOT, *CLOCK, "--format", "json", folder=tmp_path)
    assert json.loads(after.stdout)["settings"]["environment"] == []


def test_a_decision_carries_the_settings(folder: Path) -> None:
    """In both forms."""
    change = ("admit", "--delete", "/subscriptions/s/resourceGroups/g", "--snapshot", SNAPSHOT, *CLOCK)
    document = json.loads(policyeng(*change, "--format", "json", folder=folder).stdout)
    text = policyeng(*change, folder=folder).stdout

    assert document["settings"]["file"] == "policyeng.toml"
    assert "policyeng.toml (fail_on critical, ignore AML-NET-001)" in " ".join(text.split())


def test_a_run_of_an_estate_carries_the_settings(folder: Path) -> None:
    """In what `audit run` prints and keeps, and in the report on it."""
    given = ("--input", SNAPSHOT, "--estate", "e", *CLOCK, "--format", "json")
    [run] = json.loads(policyeng("audit", "run", *given, folder=folder).stdout)["runs"]
    (folder / "policyeng.toml").unlink()
    report = policyeng("audit", "report", "e", "--format", "json", folder=folder)
    verified = policyeng("audit", "verify-history", folder=folder)

    assert run["settings"]["file"] == "policyeng.toml"
    assert json.loads(report.stdout)["settings"] == run["settings"]
    assert verified.returncode == 0
    assert policyeng("audit", "replay", "1", folder=folder).returncode == 0


def test_secrets_and_what_changes_no_finding_are_left_out(tmp_path: Path) -> None:
    """A parameter under a secret name is masked; URLs of stores and targets are not repeated."""
    path = tmp_path / "policyeng.toml"
    more = '[[notify]]\nname = "n"\nurl = "json://user:hunter2@h/"\n'
    more += '[[estates]]\nname = "e"\ninputs = ["x.json"]\nevery = "P1D"\n'
    elsewhere = f'store = "postgresql://u:hunter2@h/d"\nexpect = ["{"0" * 64}"]\n'
    path.write_text(f"{elsewhere}{CONFIGURATION}{more}", encoding="utf-8")
    settings = resolve({}, {}, tmp_path)

    applied = describe_settings(settings)

    assert [change.setting for change in applied.changes] == ["fail_on", "ignore", "parameters"]
    assert applied.changes[-1].value == {"AML-SKU-102": {"apiKey": "***"}}
    assert applied.file == str(path)
    assert "hunter2" not in applied.model_dump_json()
    given = settings.model_copy(update={"variables": {"POLICYENG_OPA_URL": ("opa-url", "https://u:hunter2@h/")}})
    assert "hunter2" not in describe_settings(given).model_dump_json()
    shown_only = settings.model_copy(update={"variables": {option: (option, "x") for option in PRESENTATION}})
    assert describe_settings(shown_only) == applied


PRESENTATION = ("format", "group-by", "owner-tag", "show-skipped", "jobs", "no-cache")


def test_settings_without_a_source_are_at_their_defaults() -> None:
    """There is nothing to report."""
    assert describe_settings(Settings()) == AppliedSettings()


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("parameters", ("adminName=hunter2", "params.json"), ["adminName=***", "params.json"]),
        ("parameters", ["adminName=hunter2"], ["adminName=***"]),
        ("data", ("roles=roles.json", Path("more.json")), ["roles=roles.json", "more.json"]),
        ("policy", [Path("p")], ["p"]),
        ("snapshot", Path("x.json"), "x.json"),
        ("no-gitignore", True, True),
        ("opa-timeout", 2.5, 2.5),
        ("opa-token", "hunter2", "***"),
    ],
)
def test_a_value_of_an_option_is_shown_as_json_without_secrets(option: str, value: object, shown: object) -> None:
    """Values of template parameters may be secrets, whatever their names."""
    (change,) = describe_settings(Settings(variables={"POLICYENG_X": (option, value)})).changes

    assert change.value == shown


def test_patterns_of_the_working_directory_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In other directories a part of the path may have the same name."""
    other = Path("/elsewhere").joinpath(*tmp_path.parts[1:])
    monkeypatch.chdir(tmp_path)
    patterns = [*excluded(["/build", "!/build/kept"], tmp_path), *excluded(["/build"], other)]
    origins = {"modes": "f.toml:2", "exclude": "f.toml:1"}
    given = {"exclude": patterns, "modes": [{"policy": "*", "mode": "warn"}], "origins": origins}

    exclude, modes = describe_settings(Settings.model_validate(given)).changes

    assert exclude.value == ["/build", "!/build/kept", f"{other}/build"]
    assert modes.value == [{"policy": "*", "scope": "", "mode": "warn"}]


def test_the_sentence_is_short_and_visible() -> None:
    """A long value is cut, what cannot be seen is shown, and a file that changes nothing is named."""
    changes = (SettingChange(setting="ignore", value=["\u202ex" * 100], origin="f.toml:1"),)

    assert settings_text(AppliedSettings()) == ""
    assert settings_text(AppliedSettings(file="f.toml")) == "f.toml (changes nothing)"
    assert settings_text(AppliedSettings(file="f.toml", changes=changes)) == (
        "f.toml (ignore " + "\\u202ex" * 50 + "…)"
    )
