"""`[[estates]]` in the configuration file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from policyeng.configuration import Settings, resolve
from policyeng.errors import UsageError

ESTATE = '[[estates]]\nname = "production"\ninputs = ["snapshots"]\n'


def settings(folder: Path, text: str) -> Settings:
    """What a file comes to."""
    (folder / "policyeng.toml").write_text(text, encoding="utf-8")
    return resolve({}, {}, folder)


def test_an_estate_has_the_settings_of_its_table(tmp_path: Path) -> None:
    """Paths are relative to the file; URLs and what is not stated stay as they are."""
    text = (
        'store = "sqlite:///kept/audits.db"\n[[estates]]\nname = "a"\ninputs = ["x", "https://h/x.json"]\n'
        'cron = "0 3 * * *"\ntimezone = "Europe/Berlin"\njitter = "PT5M"\n'
        '[[estates]]\nname = "b"\nsubscription = "s"\nresource_group = "g"\nworkspace = "w"\nevery = "PT6H"\n'
    )
    found = settings(tmp_path, text)
    a, b = found.estates
    assert found.store == f"sqlite:///{tmp_path}/kept/audits.db"
    assert a.inputs == (str(tmp_path / "x"), "https://h/x.json")
    assert (a.cron, a.timezone, a.jitter, a.grace) == (
        "0 3 * * *",
        "Europe/Berlin",
        timedelta(minutes=5),
        timedelta(hours=1),
    )
    assert (b.subscription, b.resource_group, b.workspace, b.every) == ("s", "g", "w", timedelta(hours=6))
    assert b.cloud == "AzureCloud"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("estates = 1", "not a list of tables", 1),
        ('[[estates]]\ninputs = ["a"]', "without a `name`", 1),
        (f'{ESTATE}[[estates]]\nname = "production"\ninputs = ["b"]', "duplicate estate name", 4),
        ('[[estates]]\nname = "a b"\ninputs = ["a"]', "invalid estate name", 1),
        ('[[estates]]\nname = "a"', "without `inputs`", 1),
        (f'{ESTATE}subscription = "s"', "both `inputs` and `subscription`", 1),
        ('[[estates]]\nname = "a"\nsubscription = "s"\nworkspace = "w"', "`workspace` without `resource_group`", 1),
        (f'{ESTATE}corn = "0 3 * * *"', "unknown key `corn`; did you mean `cron`", 1),
        (f'{ESTATE}cron = "0 3 * *"', "for `cron`", 1),
        (f'{ESTATE}cron = "0 3 * * *"\nevery = "PT1H"', "both `cron` and `every`", 1),
        (f'{ESTATE}every = "6h"', "for `every`", 1),
        (f'{ESTATE}every = "PT0S"', "for `every`", 1),
        (f'{ESTATE}jitter = "-PT1S"', "for `jitter`", 1),
        (f'{ESTATE}timezone = "Mars/Olympus"', "unknown time zone `Mars/Olympus`", 1),
        (f'{ESTATE}timezone = "../etc"', "unknown time zone", 1),
        (f'{ESTATE}together = "yes"', "`together` is not a boolean", 1),
        (f"{ESTATE}timezone = 1", "`timezone` of an estate is not a string", 1),
        ('[[estates]]\nname = "a"\ninputs = "snapshots"', "`inputs` is not a list of strings", 1),
        ('[[estates]]\nname = "a"\ninputs = ["ftp://h/x"]', "unsupported URL scheme `ftp`", 1),
        ('[[estates]]\nname = "a"\ninputs = ["-"]', "invalid input `-`", 1),
    ],
)
def test_what_is_no_estate_is_refused_with_its_line(tmp_path: Path, text: str, message: str, line: int) -> None:
    """The message names the file, the line of the table and the remedy."""
    with pytest.raises(UsageError) as refused:
        settings(tmp_path, text)
    assert message in str(refused.value)
    assert refused.value.place == (f"{tmp_path / 'policyeng.toml'}:{line}",)
    assert refused.value.remedy
