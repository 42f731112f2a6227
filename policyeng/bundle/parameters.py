"""The parameters that policies judge with: defaults from the headers, values from the configuration."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Refuse parameters for a policy that the bundle does not have.

    Raises:
        UsageError: naming the id and the nearest one.
    """
    ids = [policy.id for policy in bundle.policies]
    for identity in given:
        if identity not in ids:
            raise UsageError(f"parameters are given for `{identity}`, which is no policy{nearest(identity, ids)}")


def _filled(policy: Policy, given: JsonObject) -> JsonObject:
    if policy.input_form == "review":  # Gatekeeper's parameters have their schema in the cluster
        return {**policy.header.defaults, **given}
    schemas = policy.header.parameters
    for name, value in given.items():
        if name not in schemas:
            raise UsageError(f"`{policy.id}` has no parameter `{name}`{nearest(name, schemas)}")
        _validate(policy, name, schemas[name], value)
    return {**policy.header.defaults, **given}


def _validate(policy: Policy, name: str, schema: JsonObject, value: object) -> None:
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
    for fault in faults[:1]:
        raise UsageError(f"parameter `{name}` of `{policy.id}`: {fault.message}", place=tuple(map(str, fault.path)))
