"""ARM templates in other documents: values for their parameters, and the resources that carry them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace

from policyeng.errors import InputError, UsageError
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, kind_of, parse_json, shortened
from policyeng.sources.discovery import Named, content_of, display
from policyeng.sources.parsed import Loaded, ParsedDocument, Placed, refuse, seen
from policyeng.sources.text import read_text


class Unresolved(Struct, frozen=True):
    """A value that is not known yet, such as a secret in a key vault.

    Attributes:
        reason: why, and what to do about it.
        text: its stand-in in a name or an id, such as `{workspaceName}`; empty if it has none.
    """

    reason: str
    text: str = ""


def read_parameters(entries: Sequence[str]) -> dict[str, object]:
    """Return the values of `--parameters` by name in lower case; later ones take precedence.

    Args:
        entries: parameter files (an `@` before the name is ignored), JSON objects, or `NAME=VALUE`, whose value is
            JSON or else text.

    Raises:
        UsageError: an entry is none of these.
        InputError: a file cannot be read, or does not contain parameters.
    """
    values: dict[str, object] = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if equals and name.strip().isidentifier():
            values[name.strip().lower()] = _parse_value(text)
        elif entry.lstrip().startswith("{"):
            values |= parameters_of(_parse_value(entry.strip()), "--parameters")
        else:
            values |= _read_file(entry)
    return values


def _read_file(entry: str) -> dict[str, object]:
    path = Path(entry.removeprefix("@"))
    if not path.is_file():
        remedy = "give a parameter file or NAME=VALUE"
        raise UsageError(f"`{entry}` is neither a file nor NAME=VALUE", remedy=remedy)
    file = display(path)
    content = content_of(Named(file, path), None, DEFAULT_MAX_BYTES)
    documents = read_text(content, file, max_bytes=DEFAULT_MAX_BYTES).documents
    return parameters_of(documents[0][1] if len(documents) == 1 else None, file)


def parameters_of(document: object, file: str) -> dict[str, object]:
    """Return the values of a parameter file by name in lower case; a parameter without a value is null.

    Raises:
        InputError: the document is not a parameter file.
    """
    if twice := next(find_twice(document), None):
        raise InputError(twice.message, place=(file, twice.place), remedy=twice.remedy)
    inner = document.get("parameters", document) if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and "parameters" in document and inner is None:
        return {}
    if not isinstance(inner, Mapping) or not all(isinstance(entry, Mapping | None) for entry in inner.values()):
        message = f"not a parameter file: {seen(document)}"
        raise InputError(message, place=(file,), remedy="give `parameters`, each an object with its `value`")
    return {name.lower(): find_value(name, entry, "not in the parameter file") for name, entry in inner.items()}


def find_value(name: str, entry: Mapping[str, object] | None, missing: str) -> object:
    """Return the value in the entry of a parameter: null for no value, and unresolved for a secret.

    Args:
        name: of the parameter.
        entry: with a `value` or a `reference`.
        missing: where the value is if the entry has neither.
    """
    if entry is None:
        return None
    value, is_secret = entry.get("value"), entry.get("reference") is not None
    if value is not None or ("value" in entry and not is_secret):
        return value
    where = "in a key vault" if is_secret else missing
    return Unresolved(f"the value of the parameter `{shortened(name)}` is {where}")


def _parse_value(text: str) -> object:
    """Parse a value as JSON, else as text; a version such as `1.10` is also text."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(value, float) else value


DEPLOYMENT = "microsoft.resources/deployments"
STACK = "microsoft.resources/deploymentstacks"
APPLICATION = "microsoft.solutions/applications"


class Carrier(NamedTuple):
    """How resources of a type contain others.

    Attributes:
        members: the members of `properties` that can contain a template.
        hidden: why it cannot contain what it deploys, and what to do; empty if it can.
        is_stored: the template is deployed later, to a scope that the resource does not state.
    """

    members: tuple[str, ...] = ()
    hidden: str = ""
    is_stored: bool = False


_ARTIFACT = Carrier(("template",), is_stored=True)
_SCRIPT = "it runs a script; declare the resources in the template instead"
_APPLICATION = "the template is in a managed application definition; check that template itself"
_BLUEPRINT = "the templates are in a blueprint; check those templates themselves"
#: By type in lower case.
CARRIERS: Mapping[str, Carrier] = {
    DEPLOYMENT: Carrier(("template",)),
    STACK: Carrier(("template",)),
    "microsoft.resources/templatespecs/versions": Carrier(("mainTemplate", "template"), is_stored=True),
    "microsoft.resources/deploymentscripts": Carrier(hidden=_SCRIPT),
    "microsoft.solutions/applicationdefinitions": Carrier(("mainTemplate",), is_stored=True),
    APPLICATION: Carrier(hidden=_APPLICATION),
    "microsoft.blueprint/blueprints/artifacts": _ARTIFACT,
    "microsoft.blueprint/blueprints/versions/artifacts": _ARTIFACT,
    "microsoft.blueprint/blueprintassignments": Carrier(hidden=_BLUEPRINT),
}
#: Artifacts of blueprints that are not templates.
_OTHER_ARTIFACTS = ("policyassignment", "roleassignment")

_MEMBERS = ("$schema", "definitions", "functions", "languageVersion", "outputs", "parameters", "resources", "variables")
_NAMES = {lowered(name): name for name in _MEMBERS}


def carrier_of(arm_type: object, body: Mapping[str, object]) -> Carrier | None:
    """Return how a resource contains others, or None if it does not."""
    carrier = CARRIERS.get(lowered(arm_type)) if isinstance(arm_type, str) else None
    if carrier is _ARTIFACT and lowered(str(member(body, "kind"))) in _OTHER_ARTIFACTS:
        return None
    return carrier


def member(holder: object, name: str) -> object:
    """Return the value of a member, ignoring case as ARM does, or None if it is missing."""
    if not isinstance(holder, Mapping):
        return None
    return next((value for key, value in holder.items() if lowered(key) == lowered(name)), None)


def template_in(carrier: Carrier, properties: object) -> tuple[str, object] | None:
    """Return the name and value of the member with the template, or None if the carrier does not contain it.

    Raises:
        InputError: several members may be the template.
    """
    if not isinstance(properties, Mapping):
        return None
    names = [lowered(name) for name in carrier.members]
    found = [(key, value) for key, value in properties.items() if lowered(key) in names and value is not None]
    if len(found) > 1:
        raise InputError(f"it has several templates: `{found[0][0]}` and `{found[1][0]}`", remedy="keep one")
    return found[0] if found else None


def template_of(value: object) -> JsonObject:
    """Return a template with its members in ARM's spelling; the template can also be JSON text.

    Raises:
        InputError: the value is not a template.
    """
    if isinstance(value, Unresolved):
        raise InputError(f"it is not known: {value.reason}")
    if isinstance(value, str):
        try:
            value = parse_json(value.encode("utf-8", "surrogatepass"), "template", max_bytes=DEFAULT_MAX_BYTES)
        except InputError as error:
            raise InputError(f"it is text that is not JSON: {error.message}", remedy="give a JSON object") from None
    if not isinstance(value, dict):
        raise InputError(f"it is {kind_of(value)}, not an object", remedy="give a JSON object")
    template: JsonObject = {}
    for key, inner in value.items():
        name = _NAMES.get(lowered(key)) or key
        if name in template:
            raise InputError(f"it has `{name}` twice: ARM ignores case in names", remedy="remove one of them")
        template[name] = inner
    resources = template.get("resources")
    if isinstance(resources, Unresolved):
        raise InputError(f"its `resources` are not known: {resources.reason}")
    if not isinstance(resources, list | dict):
        raise InputError("a template without `resources`", remedy="give the complete template")
    return template


#: By part of a template, its members in lower case whose names are not all the user's, and what these are; `*` is for
#: all members.
_PARTS: Mapping[str, Mapping[str, str]] = {
    "template": {
        **dict.fromkeys(("definitions", "outputs", "parameters"), "declarations"),
        "resources": "resources",
        "variables": "names",
    },
    "declarations": {"*": "names"},
    "resources": {"*": "resource"},
    "resource": {"copy": "names", "resources": "resources"},
    "carrier": {
        **dict.fromkeys(("expressionevaluationoptions", "parameterslink", "templatelink"), "names"),
        **dict.fromkeys(("maintemplate", "template"), "template"),
        "parameters": "declarations",
    },
}


def find_twice(template: object, pointer: str = "") -> Iterator[Problem]:
    """Yield each member of a template or a parameter file that is there twice, because ARM ignores case in names.

    Properties of resources, and values of variables, are not looked into: their names can be the user's.
    """
    waiting = [(template, pointer, "template")]
    while waiting:
        value, place, part = waiting.pop()
        names: dict[str, str] = {}
        for key in value if isinstance(value, dict) else ():
            first = names.setdefault(lowered(key), key)
            if first != key:
                message = f"`{shortened(key)}` and `{shortened(first)}` are the same member: ARM ignores case in names"
                yield refuse(f"{place}/{escaped(key)}", message, "remove one of them", kind="ambiguous")
        inner = _PARTS.get(part, {})
        members = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
        for key, below in members:
            kind = inner.get("*") or inner.get(lowered(str(key)), "")
            if part == "resource" and lowered(str(key)) == "properties" and carrier_of(member(value, "type"), {}):
                kind = "carrier"
            if kind and isinstance(below, dict | list):
                waiting.append((below, f"{place}/{escaped(str(key))}", kind))


#: Formats of existing resources: a deployment in them is complete, and its resources are listed separately.
_LIVE = ("arm-rest", "native", "resource-graph")


def with_embedded(document: Loaded, format_name: str) -> Loaded:
    """Add the resources in the templates that the document's resources contain, with their places in the document.

    A carrier that only records a past deployment adds nothing; any other carrier without a template is refused.

    Args:
        document: as its format reads it.
        format_name: the name of that format.
    """
    reading = document.reading
    carriers = [
        placed
        for placed in reading.resources
        if (carrier := carrier_of(placed.resource["type"], placed.resource)) is not None
        and not _is_record(placed, carrier, reading, format_name)
    ]
    if not carriers:
        return document
    from policyeng.sources.arm_template import Contents  # most documents carry no template

    contents = Contents(document.file)
    inner = [_move_to_document(contents.read(placed.resource, placed.unreadable), placed) for placed in carriers]
    more = replace(
        reading,
        resources=(*reading.resources, *(placed for each in inner for placed in each.resources)),
        problems=(*reading.problems, *(problem for each in inner for problem in each.problems)),
        incomplete=(*reading.incomplete, *(line for each in inner for line in each.incomplete)),
    )
    return document._replace(reading=more)


def _is_record(placed: Placed, carrier: Carrier, reading: ParsedDocument, format_name: str) -> bool:
    """Check whether a carrier has no template and only records what was deployed or stored before."""
    properties = member(placed.resource, "properties")
    try:
        has_template = template_in(carrier, properties) is not None
    except InputError:
        return False
    if has_template or any(at.startswith("/properties/") for at in placed.unreadable):
        return False
    if format_name == "terraform":
        return not reading.states_changes or placed.pointer in reading.unchanged
    if format_name not in _LIVE:
        return False
    has_run = isinstance(member(properties, "provisioningState"), str)
    return not isinstance(properties, Mapping) or carrier.is_stored or has_run


def _move_to_document(reading: ParsedDocument, carrier: Placed) -> ParsedDocument:
    """Convert the pointers in the reading of a carrier's template to pointers into the document."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=_pointer_in_document(carrier, placed.pointer),
                fields={at: _pointer_in_document(carrier, there) for at, there in placed.fields.items()},
            )
            for placed in reading.resources
        ),
        problems=tuple(
            replace(problem, place=_pointer_in_document(carrier, problem.place)) for problem in reading.problems
        ),
    )


def _pointer_in_document(carrier: Placed, pointer: str) -> str:
    """Return the pointer in the document of a part of a carrier, from `fields` or the nearest entry above it."""
    above = pointer
    while above and above not in carrier.fields:
        above = above.rpartition("/")[0]
    return carrier.fields.get(above, carrier.pointer) + pointer[len(above) :]
