"""Build `policyeng/azure_policy/aliases.gz` from a public dump of aliases.

    python tools/build_azure_policy_aliases.py policy-aliases.csv DEFINITIONS...

The dump has lines `alias,path`. Kept are all aliases of the namespaces that Machine Learning depends on, and those
that the definitions in the given directories use. `EXTRA` has what the dump lacks.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).parents[1] / "policyeng" / "azure_policy" / "aliases.gz"
SOURCE = "JanneMattila/azure-policy-evaluator policy-aliases.gz (MIT), read 2024-05-28; additions of 2026-11-28"
NAMESPACES = frozenset(
    f"microsoft.{name}"
    for name in [
        "authorization",
        "cognitiveservices",
        "containerinstance",
        "containerregistry",
        "containerservice",
        "insights",
        "keyvault",
        "machinelearningservices",
        "managedidentity",
        "operationalinsights",
        "resources",
        "search",
        "security",
        "storage",
    ]
)
#: What the dump lacks, as `alias,path` or `alias,path,type`.
EXTRA = (
    "Microsoft.MachineLearningServices.v2.Data/workspaces/deployments/model.assetId",
    "Microsoft.MachineLearningServices.v2.Data/workspaces/deployments/model.publisher",
    "Microsoft.MachineLearningServices.v2.Data/workspaces/deployments/model.registryName",
    # Azure/azure-policy built-in-policies, Machine Learning: used by published definitions, in no public dump.
    "Microsoft.MachineLearningServices/workspaces/managedNetwork.isolationMode",
    "Microsoft.MachineLearningServices/workspaces/systemDatastoresAuthMode",
    "Microsoft.MachineLearningServices/workspaces/computes/idleTimeBeforeShutdown,properties.properties.idleTimeBeforeShutdown",
)
#: Some aliases are of several types, which the dump does not name; the beginnings of their paths do.
TYPES = {
    "properties.virtualMachineProfile": "Microsoft.Compute/virtualMachineScaleSets",
    "properties.creationData": "Microsoft.Compute/disks",
    "properties.": "Microsoft.Compute/virtualMachines",
}
_ALIAS = re.compile(r"[A-Za-z][\w.]*/[\w./\[\]*$@-]+")


def used_aliases(document: object) -> Iterator[str]:
    """Yield, in lower case, every text that may be an alias."""
    if isinstance(document, dict):
        for value in document.values():
            yield from used_aliases(value)
    elif isinstance(document, list):
        for value in document:
            yield from used_aliases(value)
    elif isinstance(document, str):
        yield from (name.lower() for name in _ALIAS.findall(document))


def rows_of(dump: str, used: set[str]) -> Iterator[str]:
    """Yield the lines to keep, without paths that follow from names."""
    for line in dump.splitlines():
        name, comma, path = line.partition(",")
        folded = name.lower()
        if comma and (folded.partition("/")[0] in NAMESPACES or {folded, folded.removesuffix("[*]")} & used):
            if folded.count("/") == 1 and folded.startswith("microsoft.compute/"):
                kind = next(kind for start, kind in TYPES.items() if path.startswith(start))
                yield f"{name},{path},{kind}"
            else:
                yield name if path == f"properties.{name.rpartition('/')[2]}" else f"{name},{path}"


def main(dump: str, *directories: str) -> None:
    """Write the table."""
    used: set[str] = set()
    for path in (path for directory in directories for path in Path(directory).rglob("*.json")):
        try:
            used.update(used_aliases(json.loads(path.read_text(encoding="utf-8-sig"))))
        except ValueError:
            continue
    rows = sorted({*rows_of(Path(dump).read_text(encoding="utf-8-sig"), used), *EXTRA})
    text = "\n".join((f"# {SOURCE}", *rows, ""))
    TARGET.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
