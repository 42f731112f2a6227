"""The parameters that policies judge with: defaults from the headers, values from the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from policyeng.bundle.declaration import Policy
from policyeng.bundle.reader import Bundle
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.models import JsonObject
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import shortened

#: In the place of a policy's id: every policy that has such a parameter.
EVERY = "*"

if TYPE_CHECKING:  # costs a tenth of a second
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


def parameters_of(bundle: Bundle, given: Mapping[str, JsonObject]) -> list[JsonObject]:
    """One object per policy of the bundle, in its order.

    `given` has, by policy id, values that replace defaults; those for policies that are not in force are left alone.

    Raises:
        UsageError: a parameter name does not exist, or a value does not fit the parameter's JSON Schema.
    """
    require_fitting(bundle, given)
    return [{**policy.header.defaults, **given.get(policy.id, {})} for policy in bundle.policies]


def spread(bundle: Bundle, given: Mapping[str, JsonObject], origin: str = "") -> Mapping[str, JsonObject]:
    """Parameters by policy id, with those below `EVERY` given to each policy that has one of the name.

    What is given for a policy itself goes before them.

    Raises:
        UsageError: no policy of the bundle has a parameter of that name, in force or not; `origin` is where it stands.
    """
    if EVERY not in given:
        return given
    policies, shared = (*bundle.policies, *bundle.idle), given[EVERY]
    names = {name for policy in policies for name in policy.header.parameters}
    for name in shared:
        if name not in names:
            raise UsageError(f"no policy has a parameter `{name}`{nearest(name, names)}", place=(origin,))
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
    """Refuse what a policy of the bundle does not take; what is given for policies that are not in force is left alone.

    Args:
        bundle: the policies in force.
        given: parameters by policy id.
        origin: where they stand, such as a file.

    Raises:
        UsageError: a parameter name does not exist, or a value does not fit the parameter's JSON Schema.
    """
    for policy in bundle.policies:
        for name, value in given.get(policy.id, {}).items():
            if fault := fault_of(policy, name, value):
                raise UsageError(fault, place=(origin,))


def refuse_unknown_ids(bundle: Bundle, given: Mapping[str, JsonObject], origin: str = "") -> None:
    """Refuse parameters for a policy that the bundle does not have, in force or not; `origin` is where they stand.

    Raises:
        UsageError: naming the id and the nearest one.
    """
    ids = [policy.id for policy in (*bundle.policies, *bundle.idle)]
    for identity in given:
        if identity not in ids:
            message = f"parameters are given for `{identity}`, which is no policy{nearest(identity, ids)}"
            raise UsageError(message, place=(origin,))


def fault_of(policy: Policy, name: str, value: object) -> str:
    """Why a policy does not take a value for a parameter, and where in the value that is; empty when it takes it.

    Raises:
        BundleError: the parameter's JSON Schema is none.
    """
    if policy.input_form == "review":  # Gatekeeper's parameters have their schema in the cluster
        return ""
    schemas = policy.header.parameters
    if name not in schemas:
        return f"`{policy.id}` has no parameter `{name}`{nearest(name, schemas)}"
    return _misfit(policy, name, schemas[name], value)


def _misfit(policy: Policy, name: str, schema: JsonObject, value: object) -> str:
    # These cost a tenth of a second, and most runs give no parameters.
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        faults = list(_validator(_Schema(schema)).iter_errors(value))
    except (SchemaError, Unresolvable) as error:
        reason = error.message if isinstance(error, SchemaError) else f"`{error.ref}` is not in it"
        raise BundleError(f"the schema of parameter `{name}` is wrong: {reason}", place=(policy.file,)) from error
    if not faults:
        return ""
    pointer = "".join(f"/{escaped(str(step))}" for step in faults[0].absolute_path)
    return f"parameter `{name}` of `{policy.id}`: {f'at {pointer}, ' if pointer else ''}{_reason(faults[0])}"


class _Schema:
    """The JSON Schema of a parameter as a key: the object itself, for comparing two takes longer than validating."""

    def __init__(self, document: JsonObject) -> None:
        self.document = document

    def __hash__(self) -> int:
        return id(self.document)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and self.document is other.document


@lru_cache(maxsize=1024)
def _validator(schema: _Schema) -> Draft202012Validator:
    """What validates values; made once, for that takes longer than anything that it does.

    Raises:
        SchemaError: the schema is none.
    """
    from jsonschema import Draft202012Validator
    from referencing import Registry

    Draft202012Validator.check_schema(schema.document)
    return Draft202012Validator(schema.document, registry=Registry())  # an empty registry fetches nothing


def _reason(error: ValidationError) -> str:
    """What is wrong with a value in words; where few values are taken, the nearest of them too."""
    values = error.validator_value
    if error.validator != "enum" or not isinstance(values, list):
        return shortened(error.message, 200)
    taken = [value if isinstance(value, str) else json.dumps(value) for value in values]
    given = error.instance if isinstance(error.instance, str) else json.dumps(error.instance, default=str)
    known = f"{'is not one of' if len(taken) > 1 else 'is not'} {', '.join(f'`{value}`' for value in taken)}"
    return f"`{shortened(given)}` {known}{nearest(given, taken)}"
