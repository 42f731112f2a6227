"""The JSON Schemas of parameters (draft 2020-12): whether a value fits one, and why not.

jsonschema costs a tenth of a second to import, and most runs give no parameters and find headers in the cache, so it
is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from policyeng._performance import IdentityKey
from policyeng.errors import suggest_nearest
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

#: Keywords that do not restrict the values.
_ANNOTATIONS = frozenset({"default", "description", "title", "examples"})


def find_misfit(schema: JsonObject, value: object) -> str:
    """Return why a value does not fit a schema, and where in the value that is; empty when it fits.

    Raises:
        ValueError: the schema is none, or refers to what is not in it; in words.
    """
    if _ANNOTATIONS.issuperset(schema):
        return ""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        fault = next(_validator(IdentityKey(schema)).iter_errors(value), None)
    except SchemaError as error:
        raise ValueError(error.message) from error
    except Unresolvable as error:
        raise ValueError(f"`{error.ref}` is not in it") from error
    except RecursionError as error:
        raise ValueError("it refers to itself without end") from error
    if fault is None:
        return ""
    pointer = "".join(f"/{escaped(str(step))}" for step in fault.absolute_path)
    return f"{f'at {pointer}, ' if pointer else ''}{_reason(fault)}"


def fits(schema: JsonObject, value: object) -> bool:
    """Return whether a value fits a schema; nothing fits one that is wrong."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        return _validator(IdentityKey(schema)).is_valid(value)
    except (SchemaError, Unresolvable, RecursionError):
        return False


@lru_cache(maxsize=1024)
def _validator(schema: IdentityKey[JsonObject]) -> Draft202012Validator:
    """Return the cached validator of a schema; creating one takes longer than using it.

    Raises:
        SchemaError: the schema is none.
    """
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    Draft202012Validator.check_schema(schema.held)
    # A Python policy may give a tuple where JSON has a list.
    arrays = Draft202012Validator.TYPE_CHECKER.redefine("array", lambda _, value: isinstance(value, list | tuple))
    extend: Callable[..., type[Draft202012Validator]] = validators.extend
    lenient = extend(Draft202012Validator, type_checker=arrays)
    return lenient(schema.held, registry=Registry())  # an empty registry fetches nothing


def _reason(error: ValidationError) -> str:
    """Return what is wrong with a value in words; where few values are taken, the nearest of them too."""
    values = error.validator_value
    if error.validator != "enum" or not isinstance(values, list):
        return shortened(error.message, 200)
    taken = [value if isinstance(value, str) else json.dumps(value) for value in values]
    given = error.instance if isinstance(error.instance, str) else json.dumps(error.instance, default=str)
    known = f"{'is not one of' if len(taken) > 1 else 'is not'} {', '.join(f'`{value}`' for value in taken)}"
    return f"`{shortened(given)}` {known}{suggest_nearest(given, taken)}"
