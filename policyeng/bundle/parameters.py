"""Parameters of policies: defaults from the headers, values from the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policyeng.bundle.header import find_misfit
from policyeng.bundle.loader import Bundle
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.models import JsonObject, read_only

#: In the place of a policy's id: every policy that has such a parameter.
EVERY = "*"


def parameters_of(bundle: Bundle, given: Mapping[str, JsonObject]) -> list[JsonObject]:
    """Return one object per policy of the bundle, in its order.

    `given` has, by policy id, values that replace defaults; those for inactive policies are left alone.

    Raises:
        UsageError: a parameter name does not exist, or a value does not fit the parameter's JSON Schema.
    """
    require_fitting(bundle, given)
    return [{**policy.header.defaults, **given.get(policy.id, {})} for policy in bundle.policies]


def read_only_parameters(bundle: Bundle, given: Mapping[str, JsonObject]) -> Sequence[JsonObject]:
    """Return the same, of which nothing can be changed; a value with defaults only is shared by all callers.

    Raises:
        UsageError: as above.
    """
    if not given:
        return bundle.defaults
    return [read_only(values) for values in parameters_of(bundle, given)]


def spread_parameters(bundle: Bundle, given: Mapping[str, JsonObject], origin: str = "") -> Mapping[str, JsonObject]:
    """Parameters by policy id, with those below `EVERY` given to each policy that has one of the name.

    Parameters of a single policy override them.

    Raises:
        UsageError: no policy of the bundle, active or not, has such a parameter; `origin` is where it was set.
    """
    if EVERY not in given:
        return given
    policies, shared = (*bundle.policies, *bundle.idle), given[EVERY]
    names = {name for policy in policies for name in policy.header.parameters}
    for name in shared:
        if name not in names:
            raise UsageError(f"no policy has a parameter `{name}`{suggest_nearest(name, names)}", place=(origin,))
    everyones = {
        policy.id: {name: value for name, value in shared.items() if name in policy.header.parameters}
        for policy in policies
    }
    own = {identity: values for identity, values in given.items() if identity != EVERY}
    spread_out = {
        identity: {**everyones.get(identity, {}), **own.get(identity, {})} for identity in {**everyones, **own}
    }
    return {identity: values for identity, values in spread_out.items() if values or identity in own}


def require_fitting(bundle: Bundle, given: Mapping[str, JsonObject], origin: str = "") -> None:
    """Refuse what a policy of the bundle does not take; parameters for inactive policies are left alone.

    Args:
        bundle: the active policies.
        given: parameters by policy id.
        origin: where they were set, such as a file.

    Raises:
        UsageError: a parameter name does not exist, or a value does not fit the parameter's JSON Schema.
    """
    for policy in bundle.policies:
        for name, value in given.get(policy.id, {}).items():
            if fault := find_fault(policy, name, value):
                raise UsageError(fault, place=(origin,))


def refuse_unknown_ids(bundle: Bundle, given: Mapping[str, JsonObject], origin: str = "") -> None:
    """Refuse parameters for a policy that the bundle does not have, active or not; `origin` is where they were set.

    Raises:
        UsageError: naming the id and the nearest one.
    """
    ids = [policy.id for policy in (*bundle.policies, *bundle.idle)]
    for identity in given:
        if identity not in ids:
            message = f"parameters are given for `{identity}`, which is no policy{suggest_nearest(identity, ids)}"
            raise UsageError(message, place=(origin,))


def find_fault(policy: Policy, name: str, value: object) -> str:
    """Return why a policy does not accept a value for a parameter, and where; empty if it does.

    Raises:
        BundleError: the parameter's JSON Schema is none.
    """
    if policy.input_form == "review":  # Gatekeeper's parameters have their schema in the cluster
        return ""
    schemas = policy.header.parameters
    if name not in schemas:
        return f"`{policy.id}` has no parameter `{name}`{suggest_nearest(name, schemas)}"
    try:
        fault = find_misfit(schemas[name], value)
    except ValueError as error:
        raise BundleError(f"the schema of parameter `{name}` is wrong: {error}", place=(policy.file,)) from error
    return f"parameter `{name}` of `{policy.id}`: {fault}" if fault else ""
