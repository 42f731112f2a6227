"""Bundles without cases: thresholds, nested fields, members of lists, a flag of the workspace, and documents."""

from __future__ import annotations

from tests.bundles import deny_when

_HEADER = """\
# METADATA
# scope: package
# title: {title}
# custom:
#   id: {identity}
#   severity: medium
#   judges: [{judges}]
#   inspects: {inspects}
package acme.{name}

"""


def _rego(name: str, identity: str, evaluates: str, inspects: str, body: str) -> str:
    return (
        _HEADER.format(title=f"{name} holds", identity=identity, judges=evaluates, inspects=inspects, name=name) + body
    )


_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
#: A threshold in a nested field, a flag of the workspace, members of a list, a type without a baseline, Python.
RESOURCES = {
    "acme/nodes/nodes.rego": _rego(
        "nodes",
        "ACME-1",
        _COMPUTES,
        "[/properties]",
        deny_when("input.resource.properties.properties.scaleSettings.maxNodeCount > 37"),
    ),
    "acme/regulated/regulated.rego": _rego(
        "regulated",
        "ACME-2",
        _COMPUTES,
        "[/properties/disableLocalAuth]",
        deny_when(
            'input.workspace.tags.regime == "gxp"; object.get(input.resource, ["tags", "vault"], "") != "sealed"'
        ),
    ),
    "acme/rules/rules.rego": _rego(
        "rules",
        "ACME-3",
        "Acme.Vaults/vaults",
        "[/properties/rules]",
        deny_when("some rule in input.resource.properties.rules; rule.retentionDays < minimum; rule.enabled == true")
        + "\n\nminimum := 90\n",
    ),
    "acme/owners/owners.py": """
from policyeng import Denial, policy


@policy(
    id="ACME-4", title="owners hold", severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"], inspects=["/tags/tier", "/properties/seats"],
)
def owners(given):
    seats = given.resource.get("properties", {}).get("seats", 0)
    if given.resource.get("tags", {}).get("tier") == "gold" and isinstance(seats, int) and seats > 12:
        yield Denial(msg="too many seats", path="/properties/seats", actual=seats, expected=12)
""",
}
#: Conftest's form: documents, over several rules.
DOCUMENTS = {
    "policy/deployments.rego": """package main

deny contains msg if {
	input.kind == "Deployment"
	input.spec.replicas < 3
	msg := "fewer than three replicas"
}

deny_privileged contains msg if {
	some container in input.spec.template.spec.containers
	container.securityContext.privileged == true
	msg := "privileged"
}

warn contains msg if {
	count(input.metadata.owners) > 2
	msg := "many owners"
}
"""
}
