"""The declarations of a template: its parameters with their values, its variables and its own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from policyeng.errors import suggest_nearest
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.arm_functions import is_equal
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_template.evaluator import Resolver, is_copies
from policyeng.sources.arm_template.expressions import (
    Declared,
    DeploymentTarget,
    ExpressionBudget,
    TemplateScope,
    find_unresolved,
    text_of,
)
from policyeng.sources.parsed import format_value, remark
from policyeng.sources.templates import Unresolved

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "securestring": str,
    "int": int,
    "bool": bool,
    "object": dict,
    "secureobject": dict,
    "array": list,
}


@dataclass(eq=False, slots=True)
class ArmTemplate:
    """A template, either the document's own or a nested one.

    Attributes:
        body: as it is written.
        pointer: its JSON Pointer in the document.
        given: the values of its parameters, by name in lower case; null is no value.
        place: what it is deployed to.
        work: the budget of the document's expressions.
        is_inner: it is deployed by another template.
        remarks: what is wrong with the values of its parameters, by JSON Pointer.
        scope: the scope of its expressions.
    """

    body: JsonObject
    pointer: str
    given: Mapping[str, object]
    place: DeploymentTarget
    work: ExpressionBudget
    is_inner: bool = False
    remarks: list[Problem] = field(default_factory=list)
    scope: TemplateScope = field(init=False)

    def __post_init__(self) -> None:
        declared = Declared(
            {name.lower(): self._parameter(name, entry) for name, entry in self._members("parameters")},
            self._variables(),
            dict(self._functions()),
        )
        self.scope = TemplateScope(declared, self.place, self.work)

    @property
    def is_second_language(self) -> bool:
        """Whether it is written in version 2 of the language, with symbolic names."""
        return str(self.body.get("languageVersion", "")).startswith("2")

    def unknown_parameters(self) -> Iterator[str]:
        """Yield a message for each given value whose parameter does not exist."""
        names = dict(self._members("parameters"))
        known = {name.lower() for name in names}
        for name in self.given:
            if name.lower() not in known:
                yield f"the template has no parameter `{shortened(name)}`{suggest_nearest(name, names)}"

    def _members(self, key: str) -> Iterator[tuple[str, object]]:
        members = self.body.get(key)
        return iter(members.items() if isinstance(members, dict) else ())

    def _parameter(self, name: str, written: object) -> Callable[[], object]:
        entry = self._typed(written) if isinstance(written, dict) else {}

        def give() -> object:
            # "The ARM engine will interpret a `null` value as equivalent to no value having been supplied":
            # https://github.com/Azure/bicep/pull/11532. This is true of defaults, too.
            value = self.given.get(name.lower())
            if value is not None:
                return self._fitted(name, value, entry)
            pointer = f"{self.pointer}/parameters/{escaped(name)}/defaultValue"
            value = Resolver(self.scope, pointer).value(entry.get("defaultValue"))
            if value is not None:
                return self._explained(name, value)
            if entry.get("nullable") is True:
                return None
            return Unresolved(self._no_value(name), f"{{{name.replace('/', '~')}}}")

        return give

    def _typed(self, entry: JsonObject, depth: int = 0) -> JsonObject:
        """Merge a parameter with the type in `definitions` that it refers to."""
        target = entry.get("$ref")
        definitions = self.body.get("definitions")
        if isinstance(target, str) and isinstance(definitions, dict) and depth < 8:
            other = definitions.get(target.removeprefix("#/definitions/"))
            return {**self._typed(other, depth + 1), **entry} if isinstance(other, dict) else entry
        return entry

    def _no_value(self, name: str) -> str:
        if self.is_inner:
            return f"the nested deployment gives the parameter `{shortened(name)}` no value"
        return f"the parameter `{shortened(name)}` has no value; give `--parameters {shortened(name)}=...`"

    def _explained(self, name: str, value: object) -> object:
        """Add the remedy and the stand-in of a parameter to a default value that is not known."""
        if not isinstance(value, Unresolved):
            return value
        text = value.text if value.text.startswith("/") else f"{{{name.replace('/', '~')}}}"
        if self.is_inner:
            return Unresolved(value.reason, text)
        region = "--parameters location=<region>"
        if region in value.reason:
            return Unresolved(value.reason.replace(region, f"--parameters {name}=<region>"), text)
        if "--parameters" in value.reason or "--scope" in value.reason:
            return Unresolved(f"{value.reason}, or `--parameters {shortened(name)}=...`", text)
        return Unresolved(f"{value.reason}; give `--parameters {shortened(name)}=...`", text)

    def _fitted(self, name: str, value: object, entry: JsonObject) -> object:
        """Convert a given value to the type of its parameter; add a remark if it is not valid."""
        kind = lowered(entry["type"]) if isinstance(entry.get("type"), str) else ""
        if isinstance(value, Unresolved):
            return value if value.text else Unresolved(value.reason, f"{{{name.replace('/', '~')}}}")
        if kind in ("string", "securestring") and isinstance(value, int | float):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        elif kind == "bool" and isinstance(value, str) and lowered(value) in ("true", "false"):
            value = lowered(value) == "true"
        unfit = _why_invalid(value, kind, entry)
        if unfit:
            pointer = f"{self.pointer}/parameters/{escaped(name)}"
            self.remarks.append(remark(pointer, f"the value of the parameter `{shortened(name)}` {unfit}"))
        return value

    def _variables(self) -> Mapping[str, Callable[[], object]]:
        found: dict[str, Callable[[], object]] = {}
        for name, written in self._members("variables"):
            if name == "copy" and is_copies(written):
                for index, loop in enumerate(written if isinstance(written, list) else ()):
                    pointer = f"{self.pointer}/variables/copy/{index}"
                    found[str(loop["name"]).lower()] = self._copied_variable(loop, pointer)
            else:
                found[name.lower()] = self._variable(written, f"{self.pointer}/variables/{escaped(name)}")
        return found

    def _variable(self, written: object, pointer: str) -> Callable[[], object]:
        return lambda: Resolver(self.scope, pointer).value(written)

    def _copied_variable(self, loop: JsonObject, pointer: str) -> Callable[[], object]:
        def give() -> object:
            result = Resolver(self.scope, pointer).value({"copy": [loop]})
            return result[str(loop["name"])] if isinstance(result, dict) else result

        return give

    def _functions(self) -> Iterator[tuple[str, Callable[..., object]]]:
        """Yield the template's own functions: a list of namespaces with `members`."""
        spaces = self.body.get("functions")
        for space in spaces if isinstance(spaces, list) else ():
            members = space.get("members") if isinstance(space, dict) else None
            for name, function in members.items() if isinstance(members, dict) else ():
                if isinstance(function, dict):
                    yield f"{space.get('namespace')}.{name}".lower(), self._function(function)

    def _function(self, function: JsonObject) -> Callable[..., object]:
        declared = function.get("parameters")
        names = [str(entry.get("name")) for entry in declared or () if isinstance(entry, dict)] if declared else []
        output = function.get("output")
        functions = self._own_functions

        def call(*values: object) -> object:
            pairs = zip(names, values, strict=False)
            inner = Declared({name.lower(): _make_constant(value) for name, value in pairs}, {}, functions())
            body = output.get("value") if isinstance(output, dict) else None
            return Resolver(TemplateScope(inner, self.place, self.work)).value(body)

        return call

    def _own_functions(self) -> Mapping[str, Callable[..., object]]:
        return self.scope.declared.functions


def _make_constant(value: object) -> Callable[[], object]:
    return lambda: value


def _why_invalid(value: object, kind: str, entry: JsonObject) -> str:
    """Return why a value is not valid for its parameter, or an empty string."""
    wanted = _KINDS.get(kind)
    if find_unresolved(value) is not None:
        return ""
    if wanted is not None and (not isinstance(value, wanted) or (kind == "int" and isinstance(value, bool))):
        return f"is {kind_of(value)}, but its type is `{kind}`"
    allowed = entry.get("allowedValues")
    if isinstance(allowed, list) and allowed and not isinstance(value, list):
        if not any(is_equal(value, one) for one in allowed):
            return f"is {format_value(value)}; it may be {', '.join(format_value(one) for one in allowed[:20])}"
    elif isinstance(allowed, list) and isinstance(value, list):
        return "" if all(any(is_equal(one, other) for other in allowed) for one in value) else "has entries not allowed"
    size = value if isinstance(value, int) else len(value) if isinstance(value, str | list) else 0
    least, most = ("minValue", "maxValue") if isinstance(value, int) else ("minLength", "maxLength")
    if isinstance(entry.get(least), int) and size < entry[least]:
        return f"is {text_of(value) if isinstance(value, int) else size} and may not be below {entry[least]}"
    if isinstance(entry.get(most), int) and size > entry[most]:
        return f"is {text_of(value) if isinstance(value, int) else size} and may not be above {entry[most]}"
    return ""
