"""Walk the resources of a template, those inside others and those of the templates that it deploys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.errors import nearest
from policyeng.facts.arm_casing import ENVELOPE, has_own_map, is_respelled, respelled
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.resolver import Resolver, unfit_count
from policyeng.sources.arm_template.resource_ids import Called, called, scope_id
from policyeng.sources.arm_template.scope import DeploymentTarget, TemplateScope
from policyeng.sources.arm_template.unresolved import text_of
from policyeng.sources.parsed import Refusal, Surroundings, kind_of
from policyeng.sources.template_carriers import DEPLOYMENT, carrier_of
from policyeng.sources.template_parameters import Unresolved
from policyeng.sources.text import Text

#: Resources of one document, copies and those of nested templates among them.
MAX_RESOURCES = 5_000

_ROLE_ASSIGNMENT = "microsoft.authorization/roleassignments"
#: What a template says of a resource that the resource itself does not.
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
#: By their lower case; the providers themselves differ in how they spell `etag`.
_KEYS = {lowered(key): key for key in ENVELOPE | _OF_TEMPLATES | _MORE if key != "etag"}


class PartialResource(NamedTuple):
    """A resource with parts that are not known yet.

    Attributes:
        resource: without `id`.
        names: what it is called.
        reason: why its id is not known; empty when it is.
        doubt: why it is not known whether it is there; empty when it is.
        pointer: its JSON Pointer in the document.
        fields: by pointer into it, the pointer in the document of what stands elsewhere there.
        text: the linked template's file, in which those pointers stand; None for the document.
    """

    resource: JsonObject
    names: Called
    reason: str
    doubt: str
    pointer: str
    fields: Mapping[str, str]
    text: Text | None = None


class TemplateLevel(NamedTuple):
    """Where the walk is.

    Attributes:
        scope: what the expressions see.
        place: what the resources are deployed to; another than the expressions' in outer nested templates.
        depth: how many deployments lie around it.
        doubt: why it is not known whether the deployment around it is there.
        second: the template is written in the second version of the language.
        linked: the directory of the linked template's file, relative to the document's.
        pointer: the deployment that links to that file, in the document.
        text: that file; None where the resources stand in the document.
        is_root: the resource is in no template, so nothing in it is an expression.
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
    """One resource as it is written, its symbolic name if it has one, and its JSON Pointer in its template."""

    body: object
    symbol: str
    pointer: str


@dataclass(eq=False, slots=True)
class TemplateWalk:
    """What was found in a document so far; `deploy` walks the template of a deployment."""

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
                        message = f"more than {MAX_RESOURCES} resources, copies and nested ones among them"
                        self.refuse(level, entry.pointer, message, "split the template")
                    return
                self._one(entry, level._replace(scope=turn), doubt, parent)

    def _turns(self, entry: TemplateResource, level: TemplateLevel) -> Iterator[tuple[TemplateScope, str]]:
        """The scope of each copy, and why it is not known whether it is there."""
        if isinstance(entry.body, Unresolved):
            self.refuse(level, entry.pointer, f"a resource that is not known: {entry.body.reason}", "write it out")
            return
        if not isinstance(entry.body, dict):
            message = f"not a resource: {kind_of(entry.body)} where an object should be"
            self.refuse(level, entry.pointer, message, "give it `type` and `name`")
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
            doubt = doubt or f"whether it is deployed: {condition.reason}"
        name, kind = resolver.value(body.get("name")), resolver.value(body.get("type"))
        base = resolver.value(body["scope"]) if "scope" in body and lowered(str(kind)) != DEPLOYMENT else None
        try:
            names = _called(name, kind, parent, level.place.id if base is None else scope_id(base, level.place))
        except ExpressionError as error:
            if not _is_no(condition) or "resources" in body:  # what is not deployed needs no name
                self.refuse(level, pointer, str(error), "correct its `type` and `name`")
            return
        if not _is_no(condition):  # which does not hold for the resources inside it
            if carrier_of(names.arm_type, body) is not None:
                self.deploy(self, body, pointer, names, level._replace(doubt=doubt))
            else:
                self._remark_keys(level, body, pointer)
                reasons = [part.reason for part in (base, name) if isinstance(part, Unresolved)]
                reasons += [level.place.reason] if "{" in level.place.id and base is None else []
                draft = _draft(body, names, resolver, reasons, doubt)
                self.drafts.append(draft._replace(pointer=pointer, text=level.text))
        if "resources" in body:
            self.resources(body["resources"], f"{entry.pointer}/resources", level, names)

    def _remark_keys(self, level: TemplateLevel, body: JsonObject, pointer: str) -> None:
        for key in body:
            if lowered(key) not in _KEYS and lowered(key) != "etag":
                message = f"unknown key `{shortened(key)}`{nearest(key, _KEYS.values())}"
                self.remarks.append(_said(level, f"{pointer}/{escaped(key)}", message))

    def refuse(self, level: TemplateLevel, pointer: str, message: str, remedy: str) -> None:
        """Refuse the value at a pointer."""
        self.refusals.append(Refusal(*_said(level, pointer, message), remedy))


def _said(level: TemplateLevel, pointer: str, message: str) -> tuple[str, str]:
    """What is wrong and where; of a linked template at the deployment, since problems stand in the document."""
    if level.text is None:
        return pointer, message
    place = f"{level.text.file}:{level.text.places([pointer])[0][0]}"
    return level.pointer, f"{message}, in the linked template at `{place}`"


def entries_of(written: object, pointer: str) -> Iterator[TemplateResource]:
    """The resources under `resources`: a list, or an object by symbolic name."""
    if isinstance(written, dict):
        for symbol, body in written.items():
            yield TemplateResource(body, symbol, f"{pointer}/{escaped(symbol)}")
    elif isinstance(written, list):
        for index, body in enumerate(written):
            yield TemplateResource(body, "", f"{pointer}/{index}")


def with_known_keys(body: JsonObject, resolver: Resolver) -> JsonObject:
    """The keys of a resource as ARM spells them; it reads them without case."""
    made: JsonObject = {}
    for key, value in body.items():
        name = _KEYS.get(lowered(key), key)
        if name != key:
            resolver.fields[f"/{name}"] = f"{resolver.base}/{escaped(key)}"
        made[name] = value
    return made


def _is_no(condition: object) -> bool:
    return condition is False or (isinstance(condition, str) and lowered(condition) == "false")


def _called(name: object, kind: object, parent: Called | None, base: str) -> Called:
    if isinstance(kind, Unresolved):
        raise ExpressionError(f"a resource whose `type` is not known: {kind.reason}")
    if not isinstance(kind, str) or not kind.strip("/") or (parent is None and "/" not in kind):
        raise ExpressionError("a resource without a `type` such as `Microsoft.MachineLearningServices/workspaces`")
    if not isinstance(name, Unresolved | str) or not text_of(name).strip("/"):
        raise ExpressionError("a resource without a `name`")
    return called(kind, name, parent, base)


def _draft(body: JsonObject, names: Called, resolver: Resolver, reasons: list[str], doubt: str) -> PartialResource:
    """The resource as ARM has it, still with parts that are not known; `reasons` are those of its id."""
    last = names.name.rsplit("/", maxsplit=1)[-1]
    reason = "; ".join(dict.fromkeys(reasons)) if "{" in names.id else ""
    resource: JsonObject = {"name": Unresolved(reason, last) if "{" in last else last, "type": names.arm_type}
    for key, written in body.items():
        if key not in _OF_TEMPLATES and key not in ("name", "type"):
            there = f"{resolver.base}/{escaped(key)}"
            value = resolver.value(written, there, f"/{escaped(key)}")
            if is_respelled(names.arm_type) and key == "properties":
                own_map = has_own_map(names.arm_type)
                value = respelled(value, resolver.fields, there, "/properties", own_map=own_map)
            resource[key] = value
    if lowered(names.arm_type) == _ROLE_ASSIGNMENT:
        _put_scope(resource, names, reason)
    return PartialResource(resource, names, reason, doubt, resolver.base, resolver.fields)


def _put_scope(resource: JsonObject, names: Called, reason: str) -> None:
    """The `scope` that ARM says of an assignment of a role: what its id extends."""
    properties = resource.get("properties")
    if isinstance(properties, dict) and "scope" not in properties:
        scope = Unresolved(reason, names.base) if "{" in names.base else names.base or "/"
        resource["properties"] = {**properties, "scope": scope}
