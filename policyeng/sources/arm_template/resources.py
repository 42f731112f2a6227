"""Traversal of the resources of a template, including child resources and those of templates that it deploys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.errors import suggest_nearest
from policyeng.facts.arm_casing import ENVELOPE, has_own_map, is_respelled, respell
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.resolver import Resolver, unfit_count
from policyeng.sources.arm_template.resource_ids import Called, name_resource, scope_id
from policyeng.sources.arm_template.scope import DeploymentTarget, TemplateScope
from policyeng.sources.arm_template.unresolved import text_of
from policyeng.sources.parsed import Refusal, Surroundings, kind_of
from policyeng.sources.template_carriers import DEPLOYMENT, carrier_of
from policyeng.sources.template_parameters import Unresolved
from policyeng.sources.text import Text

#: The maximum number of resources in one document, including copies and those of nested templates.
MAX_RESOURCES = 5_000

_ROLE_ASSIGNMENT = "microsoft.authorization/roleassignments"
#: Members of a resource in a template that the deployed resource does not have.
_OF_TEMPLATES = frozenset(
    {
        "apiVersion",
        "asserts",
        "comments",
        "condition",
        "copy",
        "dependsOn",
        "existing",
        "extension",
        "import",
        "metadata",
        "resourceGroup",
        "resources",
        "scope",
        "subscriptionId",
    }
)
_MORE = frozenset({"$options", "identity", "options", "overrides", "retryPolicy"})
#: By name in lower case; providers differ in their spelling of `etag`.
_KEYS = {lowered(key): key for key in ENVELOPE | _OF_TEMPLATES | _MORE if key != "etag"}


class PartialResource(NamedTuple):
    """A resource with parts that are not known yet.

    Attributes:
        resource: without `id`.
        names: its type, name and id.
        reason: why its id is not known; empty if it is.
        doubt: why it is not known whether it exists; empty if that is known.
        pointer: its JSON Pointer in the document.
        fields: by pointer into it, the pointer in the document of a value that is elsewhere there.
        text: the file of the linked template to which the pointers refer; None for the document.
        address: its symbolic name, or its name as the template states it.
    """

    resource: JsonObject
    names: Called
    reason: str
    doubt: str
    pointer: str
    fields: Mapping[str, str]
    text: Text | None = None
    address: str = ""


class TemplateLevel(NamedTuple):
    """The position of the traversal.

    Attributes:
        scope: the scope of expressions.
        place: what the resources are deployed to; it differs from that of expressions in outer nested templates.
        depth: the number of enclosing deployments.
        doubt: why it is not known whether the enclosing deployment exists.
        second: the template is written in version 2 of the language.
        linked: the directory of the linked template's file, relative to the document's.
        pointer: the deployment in the document that links to that file.
        text: that file; None if the resources are in the document.
        is_root: the resource is not in a template, so it contains no expressions.
    """

    scope: TemplateScope
    place: DeploymentTarget
    depth: int = 0
    doubt: str = ""
    second: bool = False
    linked: str = ""
    pointer: str = ""
    text: Text | None = None
    is_root: bool = False


class TemplateResource(NamedTuple):
    """A resource as it is written, its symbolic name if it has one, and its JSON Pointer in its template."""

    body: object
    symbol: str
    pointer: str


@dataclass(eq=False, slots=True)
class TemplateWalk:
    """A traversal of one document and its results so far; `deploy` walks the template of a deployment."""

    around: Surroundings
    deploy: Callable[[TemplateWalk, JsonObject, str, Called, TemplateLevel], None]
    drafts: list[PartialResource] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    files: dict[str, Text | None] = field(default_factory=dict)
    linked: list[str] = field(default_factory=list)
    met: int = 0

    def resources(self, written: object, pointer: str, level: TemplateLevel, parent: Called | None = None) -> None:
        """Walk the resources of a template or of a resource."""
        for entry in entries_of(written, pointer):
            for turn, doubt in self._turns(entry, level):
                self.met += 1
                if self.met > MAX_RESOURCES:
                    if self.met == MAX_RESOURCES + 1:
                        message = f"more than {MAX_RESOURCES} resources, including copies and nested resources"
                        self.refuse(level, entry.pointer, message, "split the template")
                    return
                self._one(entry, level._replace(scope=turn), doubt, parent)

    def _turns(self, entry: TemplateResource, level: TemplateLevel) -> Iterator[tuple[TemplateScope, str]]:
        """Yield the scope of each copy, and why it is not known whether the copy exists."""
        if isinstance(entry.body, Unresolved):
            self.refuse(level, entry.pointer, f"a resource that is not known: {entry.body.reason}", "write it out")
            return
        if not isinstance(entry.body, dict):
            message = f"not a resource: {kind_of(entry.body)} where an object should be"
            self.refuse(level, entry.pointer, message, "add `type` and `name`")
            return
        if entry.body.get("existing") is True:
            return
        loop = entry.body.get("copy")
        if not isinstance(loop, dict):
            yield level.scope, level.doubt
            return
        name = str(loop.get("name", ""))
        count = Resolver(level.scope).value(loop.get("count"))
        unfit = unfit_count(count)
        if unfit and not isinstance(count, Unresolved):
            self.refuse(level, f"{entry.pointer}/copy", unfit, "correct its `count`")
        elif unfit:
            yield level.scope.within(name, Unresolved(unfit, "{copyIndex}")), unfit
        else:
            for index in range(count if isinstance(count, int) else 0):
                yield level.scope.within(name, index), level.doubt

    def _one(self, entry: TemplateResource, level: TemplateLevel, doubt: str, parent: Called | None) -> None:
        body = entry.body
        if not isinstance(body, dict):
            return
        pointer = entry.pointer
        resolver = Resolver(level.scope, entry.pointer)
        body = with_known_keys(body, resolver)
        condition = resolver.value(body.get("condition", True))
        if isinstance(condition, Unresolved):
            doubt = doubt or f"its condition is not known: {condition.reason}"
        name, kind = resolver.value(body.get("name")), resolver.value(body.get("type"))
        base = resolver.value(body["scope"]) if "scope" in body and lowered(str(kind)) != DEPLOYMENT else None
        try:
            names = _name_resource(name, kind, parent, level.place.id if base is None else scope_id(base, level.place))
        except ExpressionError as error:
            if not _is_false(condition) or "resources" in body:  # a resource that is not deployed needs no name
                self.refuse(level, pointer, str(error), "correct its `type` and `name`")
            return
        if not _is_false(condition):  # the condition does not apply to child resources
            if carrier_of(names.arm_type, body) is not None:
                self.deploy(self, body, pointer, names, level._replace(doubt=doubt))
            else:
                self._remark_keys(level, body, pointer)
                reasons = [part.reason for part in (base, name) if isinstance(part, Unresolved)]
                is_here = base is None or not text_of(base).startswith("/")
                reasons += [level.place.reason] if "{" in level.place.id and is_here else []
                draft = _make_draft(body, names, resolver, reasons, doubt)
                address = entry.symbol or str(body.get("name", ""))
                self.drafts.append(draft._replace(pointer=pointer, text=level.text, address=address))
        if "resources" in body:
            self.resources(body["resources"], f"{entry.pointer}/resources", level, names)

    def _remark_keys(self, level: TemplateLevel, body: JsonObject, pointer: str) -> None:
        for key in body:
            if lowered(key) not in _KEYS and lowered(key) != "etag":
                message = f"unknown key `{shortened(key)}`{suggest_nearest(key, _KEYS.values())}"
                self.remarks.append(_locate_message(level, f"{pointer}/{escaped(key)}", message))

    def refuse(self, level: TemplateLevel, pointer: str, message: str, remedy: str) -> None:
        """Refuse the value at a pointer."""
        self.refusals.append(Refusal(*_locate_message(level, pointer, message), remedy))


def _locate_message(level: TemplateLevel, pointer: str, message: str) -> tuple[str, str]:
    """Return the pointer and the message; for a linked template, the pointer is that of the deployment."""
    if level.text is None:
        return pointer, message
    place = f"{level.text.file}:{level.text.places([pointer])[0][0]}"
    return level.pointer, f"{message}, in the linked template at `{place}`"


def entries_of(written: object, pointer: str) -> Iterator[TemplateResource]:
    """Yield the resources of `resources`: a list, or an object by symbolic name."""
    if isinstance(written, dict):
        for symbol, body in written.items():
            yield TemplateResource(body, symbol, f"{pointer}/{escaped(symbol)}")
    elif isinstance(written, list):
        for index, body in enumerate(written):
            yield TemplateResource(body, "", f"{pointer}/{index}")


def with_known_keys(body: JsonObject, resolver: Resolver) -> JsonObject:
    """Return a resource with its keys in ARM's spelling; ARM ignores case."""
    result: JsonObject = {}
    for key, value in body.items():
        name = _KEYS.get(lowered(key), key)
        if name != key:
            resolver.fields[f"/{name}"] = f"{resolver.base}/{escaped(key)}"
        result[name] = value
    return result


def _is_false(condition: object) -> bool:
    return condition is False or (isinstance(condition, str) and lowered(condition) == "false")


def _name_resource(name: object, kind: object, parent: Called | None, base: str) -> Called:
    if isinstance(kind, Unresolved):
        raise ExpressionError(f"a resource whose `type` is not known: {kind.reason}")
    if not isinstance(kind, str) or not kind.strip("/") or (parent is None and "/" not in kind):
        raise ExpressionError("a resource without a `type` such as `Microsoft.MachineLearningServices/workspaces`")
    if not isinstance(name, Unresolved | str) or not text_of(name).strip("/"):
        raise ExpressionError("a resource without a `name`")
    return name_resource(kind, name, parent, base)


def _make_draft(body: JsonObject, names: Called, resolver: Resolver, reasons: list[str], doubt: str) -> PartialResource:
    """Return a resource in ARM's form, with unresolved parts; `reasons` are why its id is not known."""
    last = names.name.rsplit("/", maxsplit=1)[-1]
    reason = "; ".join(dict.fromkeys(reasons)) if "{" in names.id else ""
    resource: JsonObject = {"name": Unresolved(reason, last) if "{" in last else last, "type": names.arm_type}
    for key, written in body.items():
        if key not in _OF_TEMPLATES and key not in ("name", "type"):
            there = f"{resolver.base}/{escaped(key)}"
            value = resolver.value(written, there, f"/{escaped(key)}")
            if is_respelled(names.arm_type) and key == "properties":
                own_map = has_own_map(names.arm_type)
                value = respell(value, resolver.fields, there, "/properties", own_map=own_map)
            resource[key] = value
    if lowered(names.arm_type) == _ROLE_ASSIGNMENT:
        _add_scope(resource, names, reason)
    return PartialResource(resource, names, reason, doubt, resolver.base, resolver.fields)


def _add_scope(resource: JsonObject, names: Called, reason: str) -> None:
    """Add the `scope` that ARM returns for a role assignment: the resource that its id extends."""
    properties = resource.get("properties")
    if isinstance(properties, dict) and "scope" not in properties:
        scope = Unresolved(reason, names.base) if "{" in names.base else names.base or "/"
        resource["properties"] = {**properties, "scope": scope}
