"""`policyeng schema`: print the JSON Schemas of documents for editors and `opa check --schema`, and resource types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from policyeng.cli.console import print_line
from policyeng.cli.context import find_known
from policyeng.cli.files import write
from policyeng.cli.options import choose
from policyeng.cli.resource_schema import describe_type
from policyeng.errors import UsageError
from policyeng.models import JsonObject

#: Where schemas for editors are written, relative to the configuration file or the current directory.
SCHEMA_DIRECTORY = Path(".policyeng")
#: The name behind which a resource type is given.
_RESOURCE = "resource"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: JsonObject = {"type": "string"}
#: The fields of ARM resources at the top level, and those of derived workloads that declared ones lack.
_ARM_FIELDS = (
    *("id", "name", "type", "location", "kind", "sku", "tags", "identity", "properties", "zones", "plan", "managedBy"),
    *("managedByExtended", "extendedLocation", "etag", "systemData", "scale", "apiVersion", "eTag", "placement"),
    *("computeId", "memoryGiB", "runs", "sourceType"),
)


def _published(schema: JsonObject, name: str, title: str) -> JsonObject:
    return {"$schema": _DRAFT, "$id": f"urn:policyeng:schema:{name}:1", "title": title, **_without_titles(schema)}


def _without_titles(schema: Any) -> Any:
    """Remove the titles that pydantic derives from names: editors show them instead of the name."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}
        return {key: _without_titles(value) for key, value in kept.items()}
    return [_without_titles(entry) for entry in schema] if isinstance(schema, list) else schema


def _one_or_more(listed: JsonObject) -> JsonObject:
    """Return the schema of a list that may also be written as one entry, or whose entries may be strings."""
    return {"anyOf": [_TEXT, {**listed, "items": {"anyOf": [_TEXT, listed["items"]]}}]}


def snapshot_schema() -> JsonObject:
    """Return the schema of native snapshots."""
    from policyeng.models import Snapshot
    from policyeng.sources.native import known_keys

    schema = Snapshot.model_json_schema(mode="validation", by_alias=True)
    properties = {name: value for name, value in schema["properties"].items() if name in known_keys()}
    resource = {"type": "object", "required": ["id", "type"], "properties": {"id": _TEXT, "type": _TEXT}}
    properties |= {"snapshotVersion": {"const": 1}, "resources": {"type": "array", "items": resource}}
    schema |= {"properties": properties, "required": ["snapshotVersion"]}
    return _published(schema, "snapshot", "policyeng snapshot, version 1")


def exemptions_schema() -> JsonObject:
    """Return the schema of exemption files."""
    from policyeng.models import Exemption

    entry = Exemption.model_json_schema(mode="validation", by_alias=True)
    for key in ("createdAt", "expiresAt"):
        entry["properties"][key] = {**_TEXT, "anyOf": [{"format": "date-time"}, {"format": "date"}]}
    listed = {"exemptions": {"type": "array", "items": entry}}
    schema = {"type": "object", "additionalProperties": False, "required": ["exemptions"], "properties": listed}
    return _published(schema, "exemptions", "policyeng exemptions")


def cases_schema() -> JsonObject:
    """Return the schema of the `cases.yaml` of a policy."""
    from policyeng.bundle.cases import CaseFile

    return _published(CaseFile.model_json_schema(mode="validation", by_alias=True), "cases", "policyeng test cases")


def header_schema() -> JsonObject:
    """Return the schema of the METADATA of a policy in Rego; its fields may be inside or outside of `custom`."""
    from policyeng.bundle.header import OPA_ONLY, PolicyHeader

    schema = PolicyHeader.model_json_schema(mode="validation", by_alias=True)
    own: JsonObject = schema["properties"]
    for name in ("judges", "related_resources"):
        own[name] = _one_or_more(own[name])
    own["remediation"]["anyOf"].append(_TEXT)
    patch = schema["$defs"]["Patch"]["properties"]["patch"]
    schema["$defs"]["Remediation"]["properties"]["patch"] = {**patch, "minItems": 0}  # one of them, written alone
    own["inspects"], own["insensitive_to"] = _one_or_more(own["inspects"]), _one_or_more(own["insensitive_to"])
    custom = {"type": "object", "additionalProperties": False, "properties": own, "required": ["id", "severity"]}
    schema |= {"properties": {**{name: {} for name in sorted(OPA_ONLY)}, **own, "custom": custom}}
    schema["required"] = ["custom"]
    return _published(schema, "header", "policyeng policy header")


def configuration_schema() -> JsonObject:
    """Return the schema of `policyeng.toml`."""
    from policyeng.configuration.settings import LISTS, NAMES, Settings

    schema = Settings.model_json_schema(mode="validation", by_alias=False)
    properties = {name: schema["properties"][name] for name in NAMES}
    for name in LISTS:
        properties[name] = _one_or_more(properties[name])
    anything = {"type": "object", "additionalProperties": {"type": "object"}}
    return _published(
        {**schema, "properties": {**properties, "parameters": anything}}, "configuration", "policyeng.toml"
    )


def input_schema() -> JsonObject:
    """Return the schema of `input` in Rego; open below the first level of a resource, whose types differ."""
    parts = ("resource", "workspace", "snapshot", "parameters")
    properties = {name: _input_part(name) for name in parts}
    schema = {"type": "object", "additionalProperties": False, "properties": {**properties, "as_of": _TEXT}}
    return _published(schema, "input", "input of policies")


def _input_part(name: str) -> JsonObject:
    from policyeng.bundle.policy_types import SEEN
    from policyeng.models import Approval, DeclaredWorkload

    if name == "parameters":
        return {"type": "object"}
    if name == "snapshot":
        kinds: JsonObject = {
            part: {"type": "object"} if part.startswith("by_") else {"type": "array", "items": {"type": "object"}}
            for part in SEEN
        }
        kinds |= {"scope": _TEXT, "taken_at": _TEXT, "incomplete": {"type": "array", "items": _TEXT}}
        return {"type": "object", "additionalProperties": False, "properties": kinds}
    declared = (model.model_json_schema(by_alias=True)["properties"] for model in (DeclaredWorkload, Approval))
    names = dict.fromkeys((*_ARM_FIELDS, *(field for properties in declared for field in properties)))
    texts = ("id", "name", "type", "location", "kind")
    fields = {field: _TEXT if field in texts else {} for field in names}
    return {"type": "object", "additionalProperties": False, "properties": fields}


def _report() -> JsonObject:
    from policyeng.report.json import report_schema

    return report_schema()


def _decision() -> JsonObject:
    from policyeng.report.decision import decision_schema

    return decision_schema()


def _diff() -> JsonObject:
    from policyeng.audit.diff.report import diff_schema

    return diff_schema()


#: The schemas by name, each made when it is first used.
SCHEMAS: Mapping[str, Callable[[], JsonObject]] = {
    "snapshot": snapshot_schema,
    "exemptions": exemptions_schema,
    "cases": cases_schema,
    "header": header_schema,
    "configuration": configuration_schema,
    "input": input_schema,
    "report": _report,
    "decision": _decision,
    "diff": _diff,
}


def write_schemas(folder: Path, names: Iterable[str]) -> list[Path]:
    """Write schemas as `NAME.schema.json` and return their paths.

    Raises:
        UsageError: a file cannot be written.
    """
    paths = []
    for name in names:
        path = folder / f"{name}.schema.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, _text(name), "schema", private=False)
        paths.append(path)
    return paths


def _text(name: str) -> bytes:
    return orjson.dumps(SCHEMAS[name](), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help=f"Schema: {', '.join(SCHEMAS)}; or `{_RESOURCE}`.",
            autocompletion=choose((*SCHEMAS, _RESOURCE)),
        ),
    ] = None,
    arm_type: Annotated[
        str | None, typer.Argument(metavar="TYPE", help=f"Resource type, behind `{_RESOURCE}`.")
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write NAME.schema.json to this directory; without NAME, every schema."),
    ] = None,
) -> int:
    """Print the JSON Schema of a document, for editors, validators and OPA.

    `resource TYPE` prints the members of a resource type: their types, the words of enumerations, and what each kind of
    a compute, a job or a datastore adds.

    Examples:
      policyeng schema exemptions > exemptions.schema.json
      policyeng schema --output-dir .policyeng
      policyeng schema input > input.schema.json && opa check --schema input.schema.json policies/
      policyeng schema resource Microsoft.MachineLearningServices/workspaces/computes
    """
    if name == _RESOURCE or arm_type is not None:
        if name != _RESOURCE or arm_type is None or output_dir is not None:
            raise UsageError(f"`{_RESOURCE}` is followed by a resource type, and by nothing else")
        print_line(describe_type(arm_type))
        return 0
    chosen = [find_known(name, SCHEMAS, "schema")] if name else [*SCHEMAS]
    if output_dir is not None:
        for path in write_schemas(output_dir, chosen):
            print_line(f"wrote {path}")
    elif name:
        print_line(_text(chosen[0]).decode().rstrip("\n"))
    else:
        print_line("\n".join(chosen))
    return 0
