"""The comparison of collections of Rego: what is found, grouped, refused and different."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from policyeng.facts.catalogue import built_in_root
from tests.bundles import write

LIBRARY = "package lib.words\n\nis_long(text) { count(text) > 3 }\n"
#: Two policies with one package, a library for both, and what only one engine refuses.
COLLECTION = {
    "lib/words.rego": LIBRARY,
    "a/policy.rego": 'package policy\n\ndeny[msg] { data.lib.words.is_long(input.a); msg := "a" }\n',
    "a/policy_test.rego": 'package policy\n\ntest_a { deny["a"] with input.a as "long" }\n\ntest_b { deny["b"] }\n',
    "b/policy.rego": 'package policy\n\nimport rego.v1\n\ndeny contains "b" if to_number(input.a) == 1\n',
    "b/tests.rego": 'package policy\n\nimport rego.v1\n\ntest_lenient if not deny["b"] with input as {"a": "x"}\n',
    "c/policy.rego": 'package policy\n\ndeny[msg] { rego.parse_module("x", "package x"); msg := "c" }\n',
    "c/policy_test.rego": 'package policy\n\ntest_c { deny["c"] }\n',
    "c/data.json": '{"limits": {"most": 3}}',
    ".hidden/x.rego": "package hidden\n",
    "notes.txt": "no policy",
}


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command."""
    words = [sys.executable, "-m", "tools.run_collections", *arguments]
    return subprocess.run(words, cwd=built_in_root().parent, capture_output=True, text=True, check=False)


def rows(printed: str) -> dict[str, int]:
    """The numbers of the table by name."""
    lines = [line.rsplit(maxsplit=1) for line in printed.split("\n\n")[0].splitlines()]
    return {name.strip(): int(number) for name, number in lines}


def test_a_collection_is_compared_test_by_test(opa: Path, tmp_path: Path) -> None:
    """Groups by package, libraries from elsewhere, versions as they are, and the reasons of what is refused."""
    compared = ran(str(write(tmp_path, COLLECTION)), "--opa", str(opa))

    found = rows(compared.stdout)
    assert {"groups": 4, "modules": 7, "compiled": 5, "refused": 1, "left out with them": 1}.items() <= found.items()
    assert {"tests same": 3, "tests different": 0, "tests in OPA alone": 1}.items() <= found.items()
    assert {"tests passed": 2, "tests failed": 1}.items() <= found.items()
    assert "1  rego_type_error: rego.parse_module is refused: " in compared.stdout
    assert compared.returncode == 0


def test_differences_are_listed(tmp_path: Path) -> None:
    """With a program in the place of OPA that has another outcome."""
    folder = write(tmp_path / "c", {"a_test.rego": "package a\n\ntest_a if true\n"})
    answer = '[{"location": {"file": "a_test.rego", "row": 3}, "package": "data.a", "name": "test_a", "fail": true}]'
    other = tmp_path / "opa"
    other.write_text(f"#!/bin/sh\n[ \"$1\" = check ] || echo '{answer}'\n", encoding="utf-8")
    other.chmod(0o755)

    compared = ran(str(folder), "--opa", str(other))

    assert compared.returncode == 1
    assert "a_test.rego: data.a.test_a: ours passed, OPA failed" in compared.stdout


@pytest.mark.parametrize("files", [{}, {"a.txt": "x"}])
def test_what_is_no_collection_is_a_usage_error(files: dict[str, str], tmp_path: Path) -> None:
    """Instead of a table of zeros."""
    compared = ran(str(write(tmp_path, files)))

    assert compared.returncode == 2
    assert "has no Rego modules" in compared.stderr
    assert ran(str(tmp_path / "missing")).returncode == 2


def test_without_opa_ours_runs_alone(tmp_path: Path) -> None:
    """The table then has no rows about OPA."""
    compared = ran(str(write(tmp_path, COLLECTION)), "--opa", str(tmp_path / "missing"))

    assert compared.returncode == 0
    assert "OPA" not in compared.stdout
    assert rows(compared.stdout)["tests passed"] == 2
