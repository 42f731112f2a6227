"""The header of a policy: one model for Rego `# METADATA` and for `@policy(...)`, unknown keys refused.

Source of the Rego form: OPA annotations (openpolicyagent.org/docs/policy-language#metadata).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import field
from msgspec.structs import fields

from policyeng._performance import IdentityKey
from policyeng.errors import BundleError, suggest_nearest
from policyeng.later import lazy_pattern
from policyeng.models import Checked, JsonObject, Limited, Model, Severity, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from pydantic import TypeAdapter

_POINTER = lazy_pattern(r"(workspace:)?(/([^~/]|~[01])*)+")

#: The prefix of a JSON Pointer into the workspace of the evaluated resource.
WORKSPACE = "workspace:"
#: The type in `judges` that stands for every ARM resource; only definitions of Azure Policy have it.
ANY_TYPE = "*"
#: How a header names a parameter instead of a field or a value.
PARAMETER = "parameter:"


class Strict(Model, frozen=True):
    """A part of a header: frozen, and without unknown fields; names are written as in Python."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  # pydantic takes a mapping


def require_pointer(pointer: str, *, own: bool = False) -> None:
    """Raise ValueError for a string that is not a JSON Pointer; with `own` also for one into the workspace."""
    if not _POINTER.fullmatch(pointer) or (own and pointer.startswith(WORKSPACE)):
        also = "" if own else " or `workspace:/properties/x`"
        raise ValueError(f"`{pointer}` is not a JSON Pointer such as `/properties/x`{also}")


class RelatedResource(Strict, frozen=True, kw_only=True):
    """A page that explains more."""

    ref: str
    description: str = ""


def duration(text: str) -> timedelta:
    """Return a length of time in the form of ISO 8601, such as `P30D` or `PT6H`.

    Raises:
        ValueError: it is not one, or goes back in time.
    """
    try:
        read = _durations().validate_python(text) if text.startswith("P") else None
    except ValueError:
        read = None
    if read is None or read < timedelta():
        raise ValueError(f"`{text}` is no duration such as `P30D` or `PT6H`, and no `{PARAMETER}NAME`")
    return read


@cache
def _durations() -> TypeAdapter[timedelta]:
    """Return what reads them.

    Made when a header that is not stored yet needs it, as making it loads much of pydantic.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(timedelta)


def require_parameters(clock: str | tuple[str, ...], known: Container[str]) -> None:
    """Raise ValueError where a `clock` refers to an unknown parameter."""
    for entry in clock if isinstance(clock, tuple) else ():
        name = entry.removeprefix(PARAMETER)
        if name != entry and name not in known:
            raise ValueError(f"`clock` names a parameter `{name}` that there is not")


def _check_clock(clock: object) -> object:
    if clock not in ("", "compared") and not isinstance(clock, list | tuple):
        raise ValueError(f"`clock` is `compared`, or a list of durations such as `P30D` and of `{PARAMETER}NAME`")
    for entry in clock if isinstance(clock, list | tuple) else ():
        if not str(entry).startswith(PARAMETER):
            duration(str(entry))
    return clock


#: How a policy uses `as_of`: it compares it with times in its inputs (`compared`), or with such times moved in either
#: direction by ISO 8601 durations and by days from parameters; empty for no promise.
Clock = Annotated[Literal["", "compared"] | tuple[str, ...], Checked(_check_clock, before=True)]


#: The members of each operation in addition to `op` and `path`. A `move` is written as `copy` and `remove`.
_MEMBERS = {"add": ("value",), "replace": ("value",), "test": ("value",), "copy": ("from",), "remove": ()}
#: The fields that identify the resource; changing them would hide the failure.
_IDENTITY = frozenset({"/id", "/type", "/name"})
#: The steps of a workload are of the target that its declaration states.
_MADE_OF = {"/runs": "/target"}


def _operations(steps: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    for step in steps:
        _require_operation(step)
    if any(step["path"] == "" for step in steps) and len(steps) > 1:
        raise ValueError("a patch that deletes the resource must be its only operation")
    return steps


def _pointers_of_patch(pointers: tuple[str, ...]) -> tuple[str, ...]:
    for pointer in pointers:
        require_pointer(pointer)
    return pointers


class Patch(Strict, frozen=True, kw_only=True):
    """A JSON Patch, and where it is the remedy.

    Attributes:
        patch: its operations. A path `workspace:/...` is one of the workspace, the path `""` of a sole `remove` the
            resource itself. Objects that a path leads through are made where they are absent. `copy` hands on plain
            values, and none that is blank.
        answers: the paths of the denials that it clears, `*` for any one segment; all denials if empty.
        of: the ARM type of the resource to patch, which a workload was derived from. Without it the patch of a
            policy about workloads applies to the declared workload.
        provided: ids of policies, or areas, that limit its use: if an outcome of one of them would become worse, the
            patch is not offered for that estate.
    """

    patch: Annotated[tuple[JsonObject, ...], Limited(min_length=1), Checked(_operations)]
    answers: Annotated[tuple[str, ...], Checked(_pointers_of_patch)] = ()
    of: str = ""
    provided: tuple[str, ...] = ()

    @property
    def written(self) -> Iterator[str]:
        """The paths that it changes."""
        return (step["path"] for step in self.patch if step["op"] != "test")


class Remediation(Strict, frozen=True, kw_only=True):
    """The fix of a failure: text, and JSON Patches. For each denial the first one that answers it and applies counts.

    A single patch may be written as `patch: [operations]`.
    """

    text: Annotated[str, Limited(min_length=1)]
    patches: tuple[Patch, ...] = ()


def as_written(value: object) -> object:
    """Return a remediation that is written as text alone, or with one patch, in its whole form."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict) or "patch" not in value:
        return value
    if "patches" in value:
        raise ValueError("there are both `patch` and `patches`; write `patch` as one of the `patches`")
    rest = {key: given for key, given in value.items() if key != "patch"}
    return {**rest, "patches": [{"patch": value["patch"]}] if value["patch"] else []}


def require_declared(remediation: Remediation, inspects: Iterable[str], types: Iterable[str]) -> None:
    """Raise ValueError if a patch changes fields that the policy does not inspect, or that identify the resource.

    Args:
        remediation: the remediation of the header.
        inspects: the pointers that the header inspects.
        types: the types that the policy evaluates.
    """
    declared, lower_types = [*inspects], {lowered(kind) for kind in types}
    declared += [_MADE_OF[pointer] for pointer in declared if pointer in _MADE_OF and "workload" in lower_types]
    for entry in remediation.patches:
        if entry.of and "workload" not in lower_types:
            raise ValueError("`of` is only for patches of policies with `workload` in `judges`")
        for path in entry.written:
            if path in _IDENTITY:
                raise ValueError(f"a patch that changes `{path}` would only hide the failure")
            if entry.of:
                if not path.startswith("/properties/"):
                    raise ValueError(
                        f"a patch `of` what a workload was derived from changes `/properties`, not `{path}`"
                    )
            elif path and not any(is_at_or_below(path, pointer) for pointer in declared):
                raise ValueError(f"a patch changes `{path}`, which is neither in `inspects` nor below it")


def is_at_or_below(path: str, pointer: str) -> bool:
    """Return whether a path is at or below a JSON Pointer; `*` in the pointer matches any one segment."""
    parts, above = path.split("/"), pointer.split("/")
    return len(parts) >= len(above) and all(one in ("*", part) for part, one in zip(parts, above, strict=False))


def _require_operation(step: JsonObject) -> None:
    op = step.get("op")
    if op not in _MEMBERS:
        raise ValueError(f"`{op}` is no operation of a patch; they are {', '.join(_MEMBERS)}")
    if set(step) != {"op", "path", *_MEMBERS[op]}:
        raise ValueError(f"an operation `{op}` has the members {', '.join(('op', 'path', *_MEMBERS[op]))}")
    for pointer in (step["path"], *(step[name] for name in _MEMBERS[op] if name == "from")):
        if not isinstance(pointer, str):
            raise ValueError(f"`{pointer}` is no JSON Pointer")  # noqa: TRY004  # pydantic reports ValueErrors
        if not (pointer == "" and op == "remove"):
            require_pointer(pointer)


def split_pointer(path: str) -> tuple[bool, str]:
    """Return whether a path is one of the workspace, and the JSON Pointer in it."""
    return path.startswith(WORKSPACE), path.removeprefix(WORKSPACE)


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

    Draft202012Validator.check_schema(schema.value)
    # A Python policy may give a tuple where JSON has a list.
    arrays = Draft202012Validator.TYPE_CHECKER.redefine("array", lambda _, value: isinstance(value, list | tuple))
    extend: Callable[..., type[Draft202012Validator]] = validators.extend
    lenient = extend(Draft202012Validator, type_checker=arrays)
    return lenient(schema.value, registry=Registry())  # an empty registry fetches nothing


def _reason(error: ValidationError) -> str:
    """Return what is wrong with a value in words; where few values are taken, the nearest of them too."""
    values = error.validator_value
    if error.validator != "enum" or not isinstance(values, list):
        return shortened(error.message, 200)
    taken = [value if isinstance(value, str) else json.dumps(value) for value in values]
    given = error.instance if isinstance(error.instance, str) else json.dumps(error.instance, default=str)
    known = f"{'is not one of' if len(taken) > 1 else 'is not'} {', '.join(f'`{value}`' for value in taken)}"
    return f"`{shortened(given)}` {known}{suggest_nearest(given, taken)}"


#: What a case or the deletion of an inspected pointer can lead to.
Verdict = Literal["pass", "fail", "unknown", "not_judged"]

_METADATA = lazy_pattern(r"^#[ \t]*METADATA[ \t]*$", re.MULTILINE)
_ID = lazy_pattern(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
OPA_ONLY = frozenset({"scope", "entrypoint", "authors", "organizations", "schemas", "custom"})


def _own_pointers(value: dict[str, object]) -> dict[str, object]:
    for pointer in value:
        require_pointer(pointer, own=True)
    return value


class TargetType(Strict, frozen=True, kw_only=True):
    """A resource type that a policy evaluates, case-insensitive, optionally narrowed.

    Attributes:
        type: an ARM type, `workload` or `approval`.
        where: JSON Pointer to the values it may have, compared without case; all must match.
    """

    type: Annotated[str, Limited(min_length=1)]
    where: Annotated[dict[str, tuple[str | bool | int, ...]], Checked(_own_pointers)] = field(default_factory=dict)


def _one_step(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class Consulted(Strict, frozen=True, kw_only=True):
    """Resources that a policy reads in addition to the evaluated one and its workspace, and which of their fields.

    They are the resources of `type` that match all other fields that are set; references are compared by the part
    after their last `/providers/`, because the target subscription of a deployment can be unknown.

    Attributes:
        type: an ARM type, case-insensitive; any type if `through` refers to them.
        reads: JSON Pointers into them; `workspace:/...` for pointers into their workspaces.
        through: the resource that the evaluated one refers to at this JSON Pointer (`workspace:/...`: that its
            workspace refers to), then the one that this refers to at the next pointer. Their parents count too.
        naming: resources that refer to the evaluated one at this JSON Pointer, or with `through` to the same one.
        within: resources at or below the evaluated `resource` (of an approval: its scope), or in its `subscription`.
        judging: only if the evaluated resource is of this type.
        parameter: only if this parameter is not empty.
    """

    type: str = ""
    reads: Annotated[tuple[str, ...], Limited(min_length=1)]
    through: Annotated[tuple[str, ...], Checked(_one_step, before=True)] = ()
    naming: str = ""
    within: Literal["", "resource", "subscription"] = ""
    judging: str = ""
    parameter: str = ""

    def __post_init__(self) -> None:
        for pointer in (*self.reads, *self.through[:1]):
            require_pointer(pointer)
        for pointer in (*self.through[1:], *filter(None, [self.naming])):
            require_pointer(pointer, own=True)
        if not self.type and (not self.through or self.naming):
            raise ValueError("`type` is left out only where `through` alone names the resource")


def _check_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("an id is upper-case parts joined by hyphens, such as `AML-NET-001`")
    return value


def _type_alone(value: object) -> object:
    entries = value if isinstance(value, list | tuple) else [value]
    return [{"type": entry} if isinstance(entry, str) else entry for entry in entries]


def _ref_alone(value: object) -> object:
    entries = value if isinstance(value, list | tuple) else [value]
    return [{"ref": entry} if isinstance(entry, str) else entry for entry in entries]


def _pointers(value: tuple[str, ...]) -> tuple[str, ...]:
    for pointer in value:
        require_pointer(pointer)
    return value


def _schema_per_name(value: object) -> object:
    """Accept one object schema as well as a schema per name."""
    if isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties"), dict):
        return value["properties"]
    return value


def _with_defaults(value: dict[str, JsonObject]) -> dict[str, JsonObject]:
    for name, schema in value.items():
        if "default" not in schema:
            raise ValueError(f"parameter `{name}` has no default")
        _require_fitting_default(name, schema)
    return value


class PolicyHeader(Strict, frozen=True, kw_only=True):
    """The metadata of a policy; see `docs/policy-authoring.md` for every field.

    Attributes:
        monotone_in: by JSON Pointer, or `parameter:NAME`, which way is stricter: `lower` or `higher` numbers, or the
            values from the least to the most strict. A stricter value never adds a denial.
        insensitive_to: JSON Pointers of fields whose value changes nothing.
        clock: how it uses `as_of`; empty for no promise.
        evidence: only `evidence` of the snapshot decides it, and it has no rules.
        refines: ids of policies that fail whenever this one does while parameters have their defaults, and which this
            one intentionally refines.
    """

    id: Annotated[str, Checked(_check_id)]
    title: Annotated[str, Limited(min_length=1, max_length=150)]
    description: str = ""
    related_resources: Annotated[tuple[RelatedResource, ...], Checked(_ref_alone, before=True)] = ()
    severity: Severity
    judges: Annotated[tuple[TargetType, ...], Limited(min_length=1), Checked(_type_alone, before=True)]
    inspects: Annotated[tuple[str, ...], Checked(_pointers)] = ()
    consults: tuple[Consulted, ...] = ()
    when_absent: Verdict | dict[str, Verdict] = "unknown"
    remediation: Annotated[Remediation | None, Checked(as_written, before=True)] = None
    source: str = ""
    controls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: Annotated[dict[str, JsonObject], Checked(_with_defaults), Checked(_schema_per_name, before=True)] = (
        field(default_factory=dict)
    )
    monotone_in: dict[str, Literal["lower", "higher"] | tuple[str | bool | int | float, ...]] = field(
        default_factory=dict
    )
    insensitive_to: Annotated[tuple[str, ...], Checked(_pointers)] = ()
    clock: Clock = ""
    refines: tuple[str, ...] = ()
    evidence: bool = False
    since: str = ""
    exemptable: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.when_absent, dict) and set(self.when_absent) != set(self.inspects):
            raise ValueError("`when_absent` per pointer must name exactly the pointers of `inspects`")
        require_parameters(self.clock, self.parameters)
        if self.evidence and self.parameters.get("required", {"type": "boolean"}).get("type") != "boolean":
            raise ValueError("the parameter `required` of a policy with `evidence: true` has the type `boolean`")
        for consulted in self.consults:
            if consulted.parameter and consulted.parameter not in self.parameters:
                raise ValueError(f"`consults` names a parameter `{consulted.parameter}` that there is not")
        for place, way in self.monotone_in.items():
            parameter = place.removeprefix(PARAMETER)
            if parameter == place:
                require_pointer(place)
            elif parameter not in self.parameters:
                raise ValueError(f"`monotone_in` names a parameter `{parameter}` that there is not")
            if isinstance(way, tuple) and len(way) < 2:
                raise ValueError(f"`monotone_in` of `{place}` lists the values from the least to the most strict")
        if self.remediation is not None and self.inspects:
            require_declared(self.remediation, self.inspects, [target.type for target in self.judges])

    def absent(self, pointer: str) -> Verdict:
        """Return the outcome when an inspected pointer is deleted from a compliant resource."""
        return self.when_absent[pointer] if isinstance(self.when_absent, dict) else self.when_absent

    @property
    def defaults(self) -> JsonObject:
        """Every parameter with its default."""
        return {name: schema["default"] for name, schema in self.parameters.items()}


def _require_fitting_default(name: str, schema: JsonObject) -> None:
    try:
        fault = find_misfit(schema, schema["default"])
    except ValueError as error:
        raise ValueError(f"the schema of parameter `{name}` is wrong: {error}") from error
    if fault:
        raise ValueError(f"the default of parameter `{name}` does not fit its schema: {fault}; correct one of them")


def metadata_blocks(source: str) -> Iterator[tuple[str, int]]:
    """Yield the YAML text of every `# METADATA` block of a Rego module, with the line (from 1) below it."""
    lines = source.splitlines()
    for block in _METADATA.finditer(source):
        first = source.count("\n", 0, block.end()) + 1
        last = next((number for number in range(first, len(lines)) if not lines[number].startswith("#")), len(lines))
        text = [line[1:].removeprefix(" ") for line in lines[first:last]]
        yield "\n".join(text), last + 1


#: Keys under `custom` that no other tool writes: what a policy of ours is about, and promises about it.
_OURS = frozenset(
    {
        "judges",
        "targets",
        "inspects",
        "consults",
        "when_absent",
        "monotone_in",
        "insensitive_to",
        "refines",
        "exemptable",
    }
)


def carries_our_header(metadata: object) -> bool:
    """Check whether a METADATA block is a policyeng header: it has an id, and a key that only ours have.

    Others put ids, severities and remediations of their own under `custom`, also ids of our form, such as `AWS-0086`.
    A misspelt key of ours counts, too.
    """
    from difflib import get_close_matches  # headers of bundles are mostly stored

    custom = metadata.get("custom") if isinstance(metadata, dict) else None
    if not isinstance(custom, dict) or "id" not in custom:
        return False
    return not _OURS.isdisjoint(custom) or any(get_close_matches(str(key), _OURS, n=1, cutoff=0.85) for key in custom)


def rego_metadata(source: str) -> str | None:
    """Return the YAML text of the `# METADATA` block directly above the `package` of a Rego module.

    None if there is no such block.
    """
    package = re.search(r"^[ \t]*package[ \t]", source, re.MULTILINE)
    blocks = list(_METADATA.finditer(source, 0, package.start() if package else 0))
    if not blocks:
        return None
    lines = source[blocks[-1].end() :].lstrip("\n").splitlines()
    text: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            break
        text.append(line[1:].removeprefix(" ") if line[1:2] == " " else line[1:])
    return "\n".join(text)


def header_from_metadata(metadata: object, place: str) -> PolicyHeader | None:
    """Return the header in a parsed METADATA block; None when the block carries no `custom.id` (a library module).

    Raises:
        BundleError: a key is unknown or a value does not fit.
    """
    if not isinstance(metadata, dict):
        raise BundleError("the METADATA block is not a mapping", place=(place,), remedy="write `key: value` lines")
    if not carries_our_header(metadata):
        return None
    custom = metadata["custom"]
    outer = {key: value for key, value in metadata.items() if key not in OPA_ONLY}
    twice = sorted(set(outer) & set(custom))
    if twice:
        raise BundleError(f"`{twice[0]}` is both in METADATA and under `custom`", place=(place,))
    return parse_header({**outer, **custom}, place)


def parse_header(stated: dict[str, Any], place: str) -> PolicyHeader:
    """Return a header from its fields.

    Raises:
        BundleError: naming the place, the field and what is wrong with it.
    """
    from pydantic import ValidationError  # loaded when a header is read that is not stored yet

    if "judges" not in stated:
        stated = {"judges" if name == "targets" else name: value for name, value in stated.items()}
    try:
        return PolicyHeader.model_validate(stated)
    except ValidationError as error:
        # A key that is misspelt is also missing: its spelling is what to correct.
        first = min(error.errors(), key=lambda one: one["type"] != "unexpected_keyword_argument")
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "unexpected_keyword_argument":
            names = [entry.name for entry in fields(PolicyHeader)]
            remedy = suggest_nearest(name, names).removeprefix("; ") or f"the fields are {', '.join(names)}"
            raise BundleError(f"unknown field `{name}` in the header", place=(place,), remedy=remedy) from error
        reason = first["msg"].removeprefix("Value error, ")
        where = f"`{name}`: " if name else ""
        raise BundleError(f"{where}{reason[:1].lower()}{reason[1:]}", place=(place, "header")) from error
