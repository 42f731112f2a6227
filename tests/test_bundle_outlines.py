"""What is known of a Rego module before it is compiled: its version, by manifest or by reading it."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.bundle.files import files_of
from policyeng.bundle.rego_trees import outlines_of
from policyeng.errors import BundleError
from tests.bundles import write

V0 = "package a\ndeny[msg] { msg := input.x }\n"
V1 = "package b\ndeny contains msg if msg := input.x\n"


def versions(folder: Path) -> dict[str, bool]:
    """By path, whether a module is Rego v0."""
    return {str(outline.path): outline.rego_v0 for outline in outlines_of(folder, files_of(folder))}


def test_a_module_is_v0_where_it_does_not_read_as_v1(tmp_path: Path) -> None:
    """Both kinds are in one directory, and the bundle distinguishes them."""
    write(tmp_path, {"a.rego": V0, "b.rego": V1, "c.rego": "package c\nimport rego.v1\nx := 1\n"})

    assert versions(tmp_path) == {"a.rego": True, "b.rego": False, "c.rego": False}
    assert load_bundle(tmp_path).rego_v0 == {"a.rego"}


def test_the_manifest_decides(tmp_path: Path) -> None:
    """`rego_version` and `file_rego_versions` mean what they mean to OPA."""
    manifest = '{"rego_version": 0, "file_rego_versions": {"/new/*.rego": 1}}'
    write(tmp_path, {".manifest": manifest, "both.rego": "package c\ndeny := []\n", "new/b.rego": V1})

    assert versions(tmp_path) == {"both.rego": True, "new/b.rego": False}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({".manifest": '{"rego_version": 1}', "a.rego": V0}, "`if` keyword is required"),
        ({"a.rego": "package a\nimport rego.v1\ndeny[msg] { msg := 1 }\n"}, "neither as Rego v1"),
        ({".manifest": '{"rego_version": 2}', "a.rego": V0}, "`rego_version` of the manifest does not fit"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """A module is read or refused, with its path."""
    with pytest.raises(BundleError, match=message):
        load_bundle(write(tmp_path, files))


def test_one_path_in_two_versions_is_refused(tmp_path: Path) -> None:
    """Modules are known by their paths, so two of one path are of one version."""
    write(tmp_path, {"one/a.rego": V0, "two/a.rego": V1})
    with pytest.raises(BundleError, match="once in Rego v0 and once in v1"):
        load_bundle(tmp_path / "one", tmp_path / "two")


def test_an_indented_rule_decides_too(tmp_path: Path) -> None:
    """Where the manifest states v1, only modules that may decide are parsed; indentation must not hide one."""
    folder = write(tmp_path, {".manifest": '{"rego_version": 1}', "a.rego": 'package main\n\n  deny contains "bad"\n'})

    assert list(versions(folder)) == ["a.rego"]
