"""Small bundles written to a folder, for tests of what the engine makes of them."""

from __future__ import annotations

import json
from pathlib import Path

from policyeng.models import JsonObject, Snapshot

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"

HEADER = """\
# METADATA
# scope: package
# title: {title}
# custom:
#   id: {identity}
#   severity: {severity}
#   judges: [Microsoft.MachineLearningServices/workspaces]
{more}package area.{name}
"""


def rego(name: str, body: str, *, identity: str = "T-A-1", severity: str = "high", more: str = "") -> str:
    """A Rego policy that evaluates workspaces; `more` is further lines under `custom`."""
    lines = "".join(f"#   {line}\n" for line in more.splitlines())
    header = HEADER.format(title=f"{name} holds", identity=identity, severity=severity, more=lines, name=name)
    return f"{header}\n{body}\n"


def deny_when(condition: str) -> str:
    """A `deny` rule with a condition."""
    return f'deny contains {{"msg": "m", "path": "/properties/x", "actual": 1, "expected": 2}} if {{ {condition} }}'


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def workspace(name: str = "w", **properties: object) -> JsonObject:
    """A workspace resource."""
    identity = WORKSPACE.removesuffix("/w") + f"/{name}"
    return {"id": identity, "type": "Microsoft.MachineLearningServices/workspaces", "properties": properties}


def snapshot(*resources: JsonObject, **more: object) -> Snapshot:
    """A snapshot of resources."""
    return Snapshot.model_validate({"resources": resources, **more})


def native(*resources: object) -> str:
    """A snapshot as text."""
    return json.dumps({"snapshotVersion": 1, "resources": resources})
