"""The gate on the coverage of `policies/lib`: it reads what OPA prints, and it can fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lib_coverage import main, missed

OPA = str(ROOT / ".tools/bin/opa")
LIBRARY = "package lib.words\n\nsaid := 1 if input.a\n\nelse := 2\n"
TEST = "package lib.words_test\n\nimport data.lib.words\n\ntest_said if {inputs}\n"


def bundle(folder: Path, test: str) -> str:
    """A bundle with one library and its test."""
    library = folder / "policies" / "lib"
    library.mkdir(parents=True)
    shutil.copy(ROOT / "policies/.manifest", folder / "policies/.manifest")
    (library / "words.rego").write_text(LIBRARY, encoding="utf-8")
    (library / "words_test.rego").write_text(TEST.replace("{inputs}", test), encoding="utf-8")
    return str(folder / "policies")


@pytest.mark.parametrize(
    ("test", "expected", "said"),
    [
        ("words.said == 2 with input as {}", 1, "lib/words.rego:3"),
        ("{\n\twords.said == 2 with input as {}\n\twords.said == 1 with input.a as true\n}", 0, ""),
        ("1 == 1", 1, "lib/words.rego\n"),
    ],
    ids=["half", "whole", "nothing"],
)
def test_a_line_that_no_test_reaches_fails(
    test: str, expected: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real OPA, real files: half covered, wholly covered, not met at all."""
    assert main(OPA, bundle(tmp_path, test)) == expected
    assert said in capsys.readouterr().err


def test_a_bundle_without_a_library_is_no_success(tmp_path: Path) -> None:
    """An empty folder, as after a wrong path, must not look covered."""
    (tmp_path / "lib").mkdir()

    assert main(OPA, str(tmp_path)) == 1


def test_both_names_of_a_file_count() -> None:
    """What did not run stands under another name than what ran."""
    span = {"start": {"row": 4, "col": 1}, "end": {"row": 5, "col": 2}}
    files = {
        "policies/lib/a.rego": {"covered": [span], "coverage": 100},
        "policies/policies/lib/a.rego": {"not_covered": [span]},
        "policies/lib/b.rego": {"covered": [span], "coverage": 100},
        "policies/lib/other_b.rego": {"not_covered": [span]},
    }

    assert list(missed({"files": files}, ["lib/a.rego", "lib/b.rego", "lib/c.rego"])) == [
        "lib/a.rego:4",
        "lib/a.rego:5",
        "lib/c.rego",
    ]
