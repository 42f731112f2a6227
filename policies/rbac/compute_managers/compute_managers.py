"""The Python twin of AML-RBAC-101; the suite proves that the two agree."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts import roles
from policyeng.facts.ids import guid_of
from policyeng.facts.words import get_inside

ROLE = "/properties/roleDefinitionId"


def _applies(given: PolicyInput) -> bool:
    reaches = roles.reaches_workspace(given.resource, given.snapshot.by_scope, given.snapshot.by_type)
    return reaches or roles.scope_of(given.resource) is None


@policy(applies=_applies)
def compute_managers(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a role that grants a compute action and is not listed as a compute manager role."""
    assigned = roles.assigned_roles(given.resource, given.snapshot.by_id, given.snapshot.by_guid, given.facts)
    listed = given.parameters["compute_manager_roles"]
    is_readable = roles.scope_of(given.resource) is not None
    if not is_readable:
        yield Unknown(msg="the scope of the assignment cannot be read", path="/properties/scope")
    guid = guid_of(get_inside(given.resource, "properties", "roleDefinitionId"))
    if roles.is_listed([guid, *(role.name for role in assigned)], listed):
        return
    if not assigned:
        yield Unknown(msg="neither the snapshot nor the catalogue has the role", path=ROLE)
    for role in assigned:
        actions = given.parameters["compute_actions"] if is_readable else []
        said = {action: roles.granted_by(given.resource, role, action) for action in actions}
        if granted := [action for action in actions if said[action]]:
            denied = "a role that is no compute manager role can manage compute"
            yield Denial(msg=denied, path=ROLE, actual={"role": role.name, "actions": granted}, expected=listed)
        if not role.is_sound:
            yield Unknown(msg="the permissions of the role cannot be read", path=ROLE)
        elif None in said.values():
            yield Unknown(msg="a condition decides whether compute can be managed", path="/properties/condition")
