"""The `[[notify]]` tables of a configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.configuration import resolve
from policyeng.errors import UsageError
from policyeng.models import Severity

WHOLE = """\
[[notify]]
name = "owners"
url = "mailto://user:s3cret@mail.example?to=a@team.example"
estates = ["production"]
owners = ["team-a", "team-b"]
severity = "High"
per_hour = 5

[[notify]]
name = "hook"
url = "${HOOK}"
"""


def read(folder: Path, text: str) -> None:
    """Write a configuration and read it."""
    (folder / "policyeng.toml").write_text(text, encoding="utf-8")
    resolve({}, {}, folder)


def test_targets_are_read(tmp_path: Path) -> None:
    """With their defaults; no form of a target shows its URL."""
    (tmp_path / "policyeng.toml").write_text(WHOLE, encoding="utf-8")
    owners, hook = resolve({}, {}, tmp_path).notify

    assert (owners.name, owners.estates, owners.owners) == ("owners", ("production",), ("team-a", "team-b"))
    assert (owners.severity, owners.per_hour) == (Severity.HIGH, 5)
    assert (hook.estates, hook.owners, hook.severity, hook.per_hour) == ((), (), Severity.LOW, 20)
    assert owners.url.get_secret_value().startswith("mailto://user:s3cret@")
    assert "s3cret" not in f"{owners!r}{owners}{owners.model_dump_json()}"


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ("notify = 1", 1, "`notify` is not a list of tables"),
        ('[[notify]]\nurl = "json://x"', 1, "target without a `name`"),
        ('[[notify]]\nname = "a b"\nurl = "json://x"', 1, "invalid value `a b` for `name`"),
        ('[[notify]]\nname = "a"', 1, "target without a `url`"),
        ('[[notify]]\nname = "a"\nurl = "s3cret"', 1, "`url` is not an apprise URL"),
        ('[[notify]]\nname = "a"\nurl = 5', 1, "`url` is not an apprise URL"),
        (
            '[[notify]]\nname = "a"\nurl = "json://s3cret"\nowner = ["x"]',
            1,
            "unknown key `owner`; did you mean `owners`",
        ),
        ('[[notify]]\nname = "a"\nurl = "json://s3cret"\nowners = [1]', 1, "`owners` is not a list of strings"),
        ('[[notify]]\nname = "a"\nurl = "json://s3cret"\nseverity = "hihg"', 1, "did you mean `high`"),
        ('[[notify]]\nname = "a"\nurl = "json://s3cret"\nper_hour = 0', 1, "invalid value `0` for `per_hour`"),
        ('[[notify]]\nname = "a"\nurl = "json://s3cret"\nper_hour = true', 1, "invalid value `True` for `per_hour`"),
        (
            '[[notify]]\nname = "a"\nurl = "json://s3cret"\n\n[[notify]]\nname = "a"\nurl = "json://s3cret"',
            5,
            "duplicate target name `a`",
        ),
    ],
)
def test_what_is_no_target_is_refused(tmp_path: Path, table: str, line: int, message: str) -> None:
    """With its line, and without what a URL keeps secret."""
    with pytest.raises(UsageError) as refused:
        read(tmp_path, table)

    assert message in str(refused.value)
    assert f"policyeng.toml:{line}: " in str(refused.value)
    assert refused.value.remedy
    assert "s3cret" not in str(refused.value)


def test_the_environment_cannot_name_targets(tmp_path: Path) -> None:
    """They are tables, which only a file has."""
    assert resolve({}, {"POLICYENG_NOTIFY": "x"}, tmp_path).notify == ()
