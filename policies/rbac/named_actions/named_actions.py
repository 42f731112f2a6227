"""Custom roles that take everything instead of naming what they need."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.permissions import covered
from policyeng.facts.words import get_inside
from policyeng.models import JsonObject

#: What a pattern must not take whole.
EVERYTHING = "Microsoft.MachineLearningServices/*"
LISTS = {"actions": "notActions", "dataActions": "notDataActions"}


@policy(
    id="AML-RBAC-103",
    title="Custom roles name the Machine Learning actions they need",
    description=(
        'Access control assigns "specific permissions and access levels to users and groups". A role with `*` or '
        "`Microsoft.MachineLearningServices/*` gains every action that Azure adds later. Any pattern that takes in all "
        "of `Microsoft.MachineLearningServices/*` counts, such as `*/*`, unless the `notActions` (`notDataActions`) of "
        "its block take all of that away; one that is cut back only in part counts."
    ),
    related_resources=["https://learn.microsoft.com/azure/role-based-access-control/custom-roles"],
    severity="high",
    judges=[{"type": "Microsoft.Authorization/roleDefinitions", "where": {"/properties/type": ["CustomRole"]}}],
    remediation={
        "text": "List the actions that the role's holders need in place of the wildcard (`az role definition list "
        "--name <role>` prints the role, `az role definition update --role-definition role.json` writes it back); "
        "reading is what is left until they are listed.",
        "patches": [
            {"answers": [path], "patch": [{"op": "replace", "path": path, "value": f"{EVERYTHING}/read"}]}
            for path in [f"/properties/permissions/{block}/{granting}/0" for block in (0, 1, 2) for granting in LISTS]
        ],
    },
    source='002 "Role-Based Access Control (RBAC)"',
    refines=["AML-GOV-011"],
    since="0.1.0",
)
def named_actions(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny each action or data action that takes in all of Machine Learning where the block does not take that away."""
    permissions = get_inside(given.resource, "properties", "permissions")
    if not isinstance(permissions, list):
        yield Unknown(msg="the permissions are not a list", path="/properties/permissions")
        return
    for index, block in enumerate(permissions):
        path = f"/properties/permissions/{index}"
        if not isinstance(block, dict):
            yield Unknown(msg="a permission is not an object", path=path)
            continue
        for granting, taken in LISTS.items():
            yield from _denials(block, granting, taken, path)


def _denials(block: JsonObject, granting: str, taken: str, path: str) -> Iterator[Denial | Unknown]:
    lists = {key: [] if block.get(key) is None else block[key] for key in (granting, taken)}
    for key, patterns in lists.items():
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            yield Unknown(msg="actions are not a list of patterns", path=f"{path}/{key}")
            if key == taken or not isinstance(patterns, list):
                return
    is_taken = covered(EVERYTHING, lists[taken])
    for index, pattern in enumerate(lists[granting]):
        if isinstance(pattern, str) and covered(EVERYTHING, [pattern]) and not is_taken:
            yield Denial(
                msg="a custom role takes in every Machine Learning action",
                path=f"{path}/{granting}/{index}",
                actual=pattern,
                expected="the actions that the role needs, by name",
            )
