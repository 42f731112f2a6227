"""The parameters that policies judge with: defaults from the headers, values from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policyeng.bundle.declaration import Policy
from policyeng.bundle.reader import Bundle
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.models import JsonObject


def parameters_of(bundle: Bundle, given: Mapping[str, JsonObject]) -> list[JsonObject]:
    """One object per policy of the bundle, in its order.

    `given` has, by policy id, values that replace defaults; those for policies that are not in force are left alone.

    Raises:
        UsageError: a parameter name does not exist, or a value does not fit the parameter's JSON Schema.
    """
    return [_filled(policy, given.get(policy.id, {})) for policy in bundle.policies]


def refuse_unknown_ids(bundle: Bundle, given: Mapping[str, JsonObject]) -> None:
    """Refuse parameters for a policy that the bundle does not have, in force or not.

    Raises:
        UsageError: naming the id and the nearest one.
    """
    ids = [policy.id for policy in (*bundle.policies, *bundle.idle)]
    for identity in given:
        if identity not in ids:
            raise UsageError(f"parameters are given for `{identity}`, which is no policy{nearest(identity, ids)}")


class Fault(NamedTuple):
    """Why a value is no value of a parameter, and where in the value that is."""

    message: str
    place: tuple[str, ...] = ()


def fault_of(policy: Policy, name: str, value: object) -> Fault | None:
    """Why a policy does not take a value for a parameter; None when it does.

    Raises:
        BundleError: the parameter's JSON Schema is none.
    """
    if policy.input_form == "review":  # Gatekeeper's parameters have their schema in the cluster
        return None
    schemas = policy.header.parameters
    if name not in schemas:
        return Fault(f"`{policy.id}` has no parameter `{name}`{nearest(name, schemas)}")
    return _misfit(policy, name, schemas[name], value)


def _filled(policy: Policy, given: JsonObject) -> JsonObject:
    for name, value in given.items():
        if fault := fault_of(policy, name, value):
            raise UsageError(fault.message, place=fault.place)
    return {**policy.header.defaults, **given}


def _misfit(policy: Policy, name: str, schema: JsonObject, value: object) -> Fault | None:
    # These cost a tenth of a second, and most runs give no parameters. The empty registry fetches nothing.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
        faults = list(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except (SchemaError, Unresolvable) as error:
        reason = error.message if isinstance(error, SchemaError) else f"`{error.ref}` is not in it"
        raise BundleError(f"the schema of parameter `{name}` is wrong: {reason}", place=(policy.file,)) from error
    if not faults:
        return None
    return Fault(f"parameter `{name}` of `{policy.id}`: {faults[0].message}", tuple(map(str, faults[0].path)))
