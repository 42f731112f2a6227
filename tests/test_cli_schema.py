"""`policyeng schema` and `policyeng init`: what editors and `opa check --schema` know of our documents."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import orjson
import pytest
import yaml
from jsonschema import Draft202012Validator

from policyeng.bundle import load_bundle
from policyeng.bundle.header import rego_metadata
from policyeng.cli.schema import SCHEMAS
from policyeng.configuration import resolve
from tests.command import policyeng
from tests.conftest import ROOT

VALIDATORS = {name: Draft202012Validator(make()) for name, make in SCHEMAS.items()}


def _faults(name: str, document: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATORS[name].iter_errors(document)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_one_and_is_printed(name: str) -> None:
    """With the identity of its version."""
    printed = orjson.loads(policyeng("schema", name).stdout)

    Draft202012Validator.check_schema(printed)
    assert printed["$id"] == f"urn:policyeng:schema:{name}:1"


@pytest.mark.slow
def test_our_own_documents_fit() -> None:
    """Samples, cases and headers of the built-in policies, and the configuration of this repository."""
    samples = sorted((ROOT / "samples" / "workspaces").glob("*.json"))
    assert {
        str(path): found for path in samples if (found := _faults("snapshot", orjson.loads(path.read_bytes())))
    } == {}
    exemptions = _read_yaml((ROOT / "samples" / "exemptions.yaml").read_text())
    assert _faults("exemptions", exemptions) == []
    assert _faults("configuration", tomllib.loads((ROOT / "policyeng.toml").read_text())) == []
    wrong = {}
    for policy in load_bundle().policies:
        if policy.cases is not None:
            cases = _read_yaml(policy.cases.read_text())
            wrong[f"{policy.id} cases"] = _faults("cases", cases)
        if policy.rules and (metadata := rego_metadata((ROOT / "policies" / policy.file).read_text())):
            wrong[f"{policy.id} header"] = _faults("header", _read_yaml(metadata))
    assert {place: found for place, found in wrong.items() if found} == {}
    assert len(wrong) > 80


class _WithoutTimes(yaml.SafeLoader):
    """YAML 1.2 as editors read it: times are text."""


_WithoutTimes.yaml_implicit_resolvers = {
    first: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(text: str) -> object:
    return yaml.load(text, _WithoutTimes)  # noqa: S506  # a safe loader


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("exemptions", {"exemptions": [{"id": "X"}]}),
        ("exemptions", {"exemption": []}),
        ("cases", {"passes": {}}),
        ("cases", {"absent": {"/x": "maybe"}}),
        (
            "header",
            {"title": "x", "custom": {"id": "A-1", "serverity": "low", "severity": "low", "judges": "workload"}},
        ),
        ("configuration", {"fail_on": "severe"}),
        ("configuration", {"failon": "low"}),
        ("snapshot", {"resources": []}),
        ("snapshot", {"snapshotVersion": 1, "resorces": []}),
    ],
)
def test_mistakes_do_not_fit(name: str, document: object) -> None:
    """What an editor underlines is what a run would refuse."""
    assert _faults(name, document) != []


def test_reports_fit_theirs() -> None:
    """The schemas are those of what is printed."""
    sample = str(ROOT / "samples" / "workspaces" / "regulated.json")
    report = policyeng("check", sample, "-f", "json")

    assert _faults("report", orjson.loads(report.stdout)) == []


def test_init_writes_a_configuration_that_is_read(tmp_path: Path) -> None:
    """Also with every commented example active; an existing file is kept."""
    ran = policyeng("init", folder=tmp_path)
    path = tmp_path / "policyeng.toml"
    text = path.read_text(encoding="utf-8")

    assert (ran.returncode, ran.stdout.splitlines()[0]) == (0, "wrote policyeng.toml")
    assert text.startswith("#:schema ./.policyeng/configuration.schema.json\n")
    assert (tmp_path / ".policyeng" / "configuration.schema.json").is_file()
    assert resolve({}, {}, tmp_path).file == path
    lines = [line.removeprefix("# ") if "= " in line or line.startswith("# [") else line for line in text.splitlines()]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert _faults("configuration", tomllib.loads("\n".join(lines))) == []
    settings = resolve({}, {}, tmp_path)
    assert (settings.profile, settings.estates[0].name, settings.modes[0].mode) == ("documents", "production", "warn")
    again = policyeng("init", folder=tmp_path)
    assert (again.returncode, "policyeng.toml: the file already exists" in again.stderr) == (3, True)


def test_opa_checks_policies_with_the_schema_of_the_input(opa: Path, tmp_path: Path) -> None:
    """Our own policies fit, and a misspelt part of the input is found before anything runs."""
    policyeng("schema", "input", "--output-dir", str(tmp_path))
    schema = tmp_path / "input.schema.json"
    misspelt = tmp_path / "a.rego"
    misspelt.write_text('package a\n\ndeny contains "x" if input.resourse.id == "a"\n', encoding="utf-8")
    check = [str(opa), "check", "--schema", str(schema)]
    ours = subprocess.run([*check, "-b", str(ROOT / "policies")], capture_output=True, text=True, check=False)
    wrong = subprocess.run([*check, str(misspelt)], capture_output=True, text=True, check=False)

    assert (ours.returncode, ours.stderr) == (0, "")
    assert wrong.returncode == 1
    assert "undefined ref: input.resourse.id" in wrong.stderr
