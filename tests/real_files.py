"""Real files next to the repository: the outcome of each, and, found without our readers, its content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.models import JsonObject, Outcome
from policyeng.sources import read_inputs

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "real"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)

#: The format that reads the files of a folder; a folder of files that no format reads has none.
FOLDERS: dict[str, str] = {
    "admission_review": "kubernetes",
    "arm_rest_bodies": "arm-rest",
    "arm_rest_live": "arm-rest",
    "arm_template": "arm-template",
    "aso": "kubernetes",
    "azure_policy": "",
    "cli_v2_output": "az-output",
    "cli_v2_yaml": "azure-cli",
    "k8s_azureml": "kubernetes",
    "rbac": "role-access",
    "resource_graph": "resource-graph",
    "terraform": "terraform",
    "terraform_plan_json": "terraform",
    "vm_sku": "",
}
_ML = "microsoft.machinelearningservices/"
#: What an Azure CLI file with such a `$schema` describes is a resource of its own; others are assets and components.
_CLI_SCHEMAS = re.compile(
    r".*/(workspace|amlcompute|computeinstance|vmcompute|(managed|kubernetes)online(endpoint|deployment)"
    r"|(model|pipelinecomponent)?batch(endpoint|deployment)|(pipeline|command|automl|sweep|spark)job|schedule"
    r"|connection|azurefile|azureblob|azuredatalake\w*)(\.schema)?\.json"
)
#: The ids of what `az ml` prints, assets aside.
_OUTPUT_ID = re.compile(
    rf".*/providers/{_ML}(workspaces|registries)/[^/]+"
    r"(/(computes|onlineendpoints|batchendpoints|datastores|connections|jobs|schedules)/[^/]+(/deployments/[^/]+)?)?"
)
_CLI_COMPUTES = {"amlcompute", "computeinstance", "virtualmachine", "kubernetes", "synapsespark"}


class Judged(NamedTuple):
    """What one file comes to; `entry` is what the list of what is expected keeps."""

    entry: JsonObject
    findings: int
    unknown: int


def is_read(entry: JsonObject) -> bool:
    """Whether something of a file is evaluated."""
    return bool(entry.get("resources")) or ("format" in entry and "refused" not in entry)


def needed() -> Path:
    """The real files; the test is skipped where they are missing."""
    if not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    return REAL


def files_in(folder: Path) -> list[Path]:
    """Every file below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def outcome(path: Path, bundle: Bundle) -> Judged:
    """Read one file alone, and evaluate its content."""
    inputs = read_inputs([path])
    mine = [read for read in inputs.read if read.file == str(path)]
    entry: JsonObject = {}
    if mine:
        entry["format"] = ", ".join(sorted({read.format for read in mine}))
        entry["resources"] = sum(read.resources for read in mine)
    if refused := [problem for problem in inputs.problems if problem.level == "error"]:
        entry["refused"] = list(dict.fromkeys(problem.message.partition("; ")[0] for problem in refused))
    if skipped := [skipped.reason for skipped in inputs.ledger if skipped.place == str(path)]:
        entry["nothing"] = skipped
    findings = evaluate(bundle, inputs.snapshot, as_of=AS_OF).findings
    evaluated = {finding.resource_type.lower() for finding in findings}
    types = {resource["type"].lower() for resource in inputs.snapshot.resources}
    if unjudged := sorted(types - evaluated):
        entry["no policy judges"] = unjudged
    unknown = sum(finding.outcome is Outcome.UNKNOWN for finding in findings)
    assert not [finding for finding in findings if finding.outcome is Outcome.ERROR], path
    return Judged(entry, len(findings), unknown)


def holds_machine_learning(path: Path) -> bool:
    """Whether a file has Machine Learning resources: by a look at its values, not by our readers.

    A file that cannot be parsed has some if it names them, so that a reader cannot pass by refusing it.
    """
    content = path.read_bytes()
    if path.suffix not in (".json", ".yaml", ".yml"):
        return False
    try:
        documents = _documents(content, path.suffix)
    except (ValueError, yaml.YAMLError):
        return re.search(rb"microsoft\.machinelearningservices/\w+|azuremlschemas", content, re.I) is not None
    return any(_is_cli(document) for document in documents) or any(
        _is_resource(value, document) for document in documents for value in _objects(document)
    )


def _documents(content: bytes, suffix: str) -> list[object]:
    if suffix == ".json":
        return [json.loads(content)]
    return list(yaml.load_all(content, Loader=yaml.BaseLoader))


def _objects(value: object) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _is_cli(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    schema = str(document.get("$schema", "")).strip().lower()
    if schema:
        return "azureml" in schema and _CLI_SCHEMAS.fullmatch(schema) is not None
    keys = document.keys()
    return "name" in keys and (
        str(document.get("type", "")).lower() in _CLI_COMPUTES or not keys.isdisjoint({"managed_network", "auth_mode"})
    )


def _is_resource(value: JsonObject, document: object) -> bool:
    """An ARM resource deployed or to be deployed, output of a command, a Terraform resource or a Kubernetes object."""
    kind, identity = (str(value.get(key, "")).lower() for key in ("type", "id"))
    if kind.startswith(_ML):
        in_template = isinstance(document, dict) and "deploymenttemplate" in str(document.get("$schema", "")).lower()
        return "apiVersion" in value if in_template else bool(identity and "properties" in value)
    if kind.startswith("azurerm_machine_learning_") or (kind == "azapi_resource" and _ML in json.dumps(value).lower()):
        return bool({"values", "change", "instances"} & value.keys())
    if str(value.get("apiVersion", "")).startswith("machinelearningservices.azure.com/"):
        return {"kind", "metadata", "spec"} <= value.keys()
    return _OUTPUT_ID.fullmatch(identity) is not None and any("_" in key for key in value)
