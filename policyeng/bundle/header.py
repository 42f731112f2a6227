"""The header of a policy: one model for Rego `# METADATA` and for `@policy(...)`, unknown keys refused.

Source of the Rego form: OPA annotations (openpolicyagent.org/docs/policy-language#metadata).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from policyeng.bundle.header_validators import (
    PARAMETER,
    Clock,
    RelatedResource,
    Strict,
    require_parameters,
    require_pointer,
)
from policyeng.bundle.parameter_schemas import find_misfit
from policyeng.bundle.remediation import Remediation, as_written, require_declared
from policyeng.errors import BundleError, suggest_nearest
from policyeng.frozen import field, fields, frozen
from policyeng.later import lazy_pattern
from policyeng.models import Checked, JsonObject, Limited, Severity

#: What a case or the deletion of an inspected pointer can lead to.
Verdict = Literal["pass", "fail", "unknown", "not_judged"]

_METADATA = lazy_pattern(r"^#[ \t]*METADATA[ \t]*$", re.MULTILINE)
_ID = lazy_pattern(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
OPA_ONLY = frozenset({"scope", "entrypoint", "authors", "organizations", "schemas", "custom"})


def _own_pointers(value: dict[str, object]) -> dict[str, object]:
    for pointer in value:
        require_pointer(pointer, own=True)
    return value


@frozen(kw_only=True)
class TargetType(Strict):
    """A resource type that a policy evaluates, case-insensitive, optionally narrowed.

    Attributes:
        type: an ARM type, `workload` or `approval`.
        where: JSON Pointer to the values it may have, compared without case; all must hold.
    """

    type: Annotated[str, Limited(min_length=1)]
    where: Annotated[dict[str, tuple[str | bool | int, ...]], Checked(_own_pointers)] = field(default_factory=dict)


def _one_step(value: object) -> object:
    return (value,) if isinstance(value, str) else value


@frozen(kw_only=True)
class Consulted(Strict):
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


@frozen(kw_only=True)
class PolicyHeader(Strict):
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


def carries_our_header(metadata: object) -> bool:
    """Check whether a METADATA block is a policyeng header: it has an id of our form, or `judges`.

    Others put ids of their own under `custom`, such as `KSV001`.
    """
    custom = metadata.get("custom") if isinstance(metadata, dict) else None
    if not isinstance(custom, dict) or "id" not in custom:
        return False
    return "judges" in custom or (isinstance(custom["id"], str) and _ID.fullmatch(custom["id"]) is not None)


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
