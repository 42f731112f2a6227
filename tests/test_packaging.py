"""What the wheel has: every package with its data, no machine code, and the libraries that the code imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_in_the_wheel() -> None:
    """And every file in one of them that is not Python; what is not named would be missing where it is installed."""
    settings = PROJECT["tool"]["setuptools"]
    folders = {path.parent for path in (ROOT / "policyeng").rglob("*.py")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}

    assert set(settings["packages"]) - {"policyeng.policies", "policyeng.samples"} == packages
    named = {
        path
        for package, patterns in settings["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    others = {path for folder in folders for path in folder.iterdir() if path.is_file()}
    assert {path for path in others - named if path.suffix not in {".py", ".so"}} == set()


def test_it_is_built_by_setuptools_alone() -> None:
    """And by libraries that it needs anyhow: no machine code is compiled, so one wheel serves every platform."""
    required = set(PROJECT["build-system"]["requires"])
    assert {re.split("[<>=]", each)[0] for each in required - set(PROJECT["project"]["dependencies"])} == {"setuptools"}
    assert set(PROJECT["tool"]["setuptools"]) == {"include-package-data", "package-data", "package-dir", "packages"}


@pytest.mark.slow
def test_what_the_rego_package_imports_is_declared() -> None:
    """As a dependency, or in the extra `rego`."""
    project = PROJECT["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["rego"]]
    names = {re.split("[<>=[]", each)[0] for each in declared}
    imported = set()
    for path in (ROOT / "policyeng" / "rego").rglob("*.py"):
        if path.name == "coverage_plugin.py":  # only coverage.py imports it
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    libraries = imported - set(sys.stdlib_module_names) - {"policyeng"}

    assert libraries
    distributions = packages_distributions()
    assert {distributions[library][0].lower() for library in libraries} <= names
