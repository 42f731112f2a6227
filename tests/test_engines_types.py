"""Types are checked where policies are written, and not where they are evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.engines.embedded import checked_types, compile_rego
from policyeng.errors import EngineError
from tests.bundles import deny_when, rego, write
from tests.command import policyeng

#: A condition that is never true, which OPA refuses, and one that it takes.
NEVER, SOMETIMES = "upper(input.resource.name) == 1", "count(input.resource.name) == 1"


def bundle(folder: Path, condition: str) -> Path:
    """A bundle with one policy."""
    return write(folder, {".manifest": '{"roots": [""]}', "area/a/a.rego": rego("a", deny_when(condition))})


@pytest.mark.parametrize("cached", [False, True])
def test_types_are_checked_where_it_is_asked_for(cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the program was compiled before, and stored."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    if not cached:
        monkeypatch.setenv("POLICYENG_NO_CACHE", "1")
    wrong, right = (load_bundle(bundle(tmp_path / name, text)) for name, text in (("w", NEVER), ("r", SOMETIMES)))

    for each in (wrong, right):
        assert compile_rego(each)
    with checked_types():
        assert compile_rego(right)
        with pytest.raises(EngineError, match="rego_type_error: match error"):
            compile_rego(wrong)
    assert compile_rego(wrong)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check samples/workspaces/exempted.json --as-of 2026-06-01T00:00:00Z", 0),
        ("test", 2),
        ("bundle build --output {folder}/b.tar.gz", 2),
        ("verify --examples 1", 2),
    ],
)
def test_commands_of_authors_check_types(command: str, code: int, tmp_path: Path) -> None:
    """A condition that can never be true is a mistake of its author, and no other's error."""
    folder = bundle(tmp_path / "bundle", NEVER)

    ran = policyeng(*command.format(folder=tmp_path).split(), "--policy", str(folder))

    assert (ran.returncode, "rego_type_error: match error" in ran.stderr) == (code, code == 2), ran.stderr
