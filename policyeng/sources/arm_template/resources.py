"""The resources of a template with their ids: child resources, and those of the templates that it deploys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from policyeng.errors import InputError, suggest_nearest
from policyeng.facts.arm_casing import ENVELOPE, respell
from policyeng.models import JsonObject, PartKind, Problem, lowered
from policyeng.parsing.arm_expressions import ExpressionError
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, kind_of, parse_json, shortened
from policyeng.sources.arm_resource import describe_misspelt
from policyeng.sources.arm_template.evaluator import Resolver, unfit_count
from policyeng.sources.arm_template.expressions import DeploymentTarget, TemplateScope, in_braces, text_of
from policyeng.sources.arm_template.functions import id_below
from policyeng.sources.arm_template.templates import ArmTemplate
from policyeng.sources.parsed import Surroundings, refuse, remark
from policyeng.sources.templates import (
    CARRIERS,
    DEPLOYMENT,
    STACK,
    Carrier,
    Unresolved,
    carrier_of,
    find_twice,
    find_value,
    member,
    parameters_of,
    template_in,
    template_of,
)
from policyeng.sources.text import Text


class Called(NamedTuple):
    """The type, name and id of a resource.

    Attributes:
        arm_type: the full type; for an extension, without the type that it extends.
        path: the prefix of the types of its children; for an extension, with the type that it extends.
        name: the full name, such as `workspace/cluster`, with unknown parts in braces.
        base: the id of what it is deployed to, or that it extends.
        id: its ARM id.
    """

    arm_type: str
    path: str
    name: str
    base: str
    id: str


def name_resource(kind: str, name: object, parent: Called | None, base: str) -> Called:
    """Return the full type, name and id of a resource.

    Args:
        kind: its type; relative to the parent if it has one.
        name: its name, likewise; can be unresolved.
        parent: the resource that contains it.
        base: the id of what it is deployed to, or that it extends.

    Raises:
        ExpressionError: type and name do not have matching numbers of parts.
    """
    kind, text = kind.strip("/"), text_of(name).strip("/")
    if parent is not None:
        if "." not in kind.split("/", maxsplit=1)[0]:
            text = text if text.count("/") > kind.count("/") and not _extends(kind) else f"{parent.name}/{text}"
            kind = f"{parent.path}/{kind}"
        elif not lowered(kind).startswith(f"{lowered(parent.path)}/"):
            base = parent.id
    names = text.split("/")
    missing = kind.count("/") - len(names)
    if missing > 0 and isinstance(name, Unresolved):
        inner = names[0].strip("{}")
        names = [f"{{{part} of {inner}}}" for part in kind.split("/")[1 : missing + 1]] + names
    if "" in names:
        raise ExpressionError(f"a part of the name `{text}` is empty")
    return _name_extension(kind, names, base) if _extends(kind) else _full_names(kind, kind, names, base)


def _full_names(kind: str, path: str, names: list[str], base: str) -> Called:
    return Called(kind, path, "/".join(names), base, id_below(base, kind, names))


def _extends(kind: str) -> bool:
    """Check whether a type is the older form of an extension: `Microsoft.X/y/providers/roleAssignments`."""
    return "/providers/" in f"/{lowered(kind)}/"


def _name_extension(kind: str, names: list[str], base: str) -> Called:
    """Return the names of an extension whose name contains the provider: `storage/Microsoft.Authorization/guid`."""
    segments = kind.split("/")
    at = len(segments) - 1 - [lowered(segment) for segment in reversed(segments)].index("providers")
    if len(segments) - 1 != len(names):
        raise ExpressionError(f"`{kind}` takes {len(segments) - 1} names, not {len(names)}")
    outer = id_below(base, "/".join(segments[:at]), names[: at - 1])
    arm_type = "/".join([names[at - 1], *segments[at + 1 :]])
    return Called(arm_type, kind, "/".join(names), outer, id_below(outer, arm_type, names[at:]))


def scope_id(value: object, place: DeploymentTarget) -> str:
    """Return the id of an extension's `scope`, which is absolute or relative to what the template is deployed to."""
    text = text_of(value)
    if text.startswith("/"):
        return text.rstrip("/")
    return f"{place.id}/providers/{text}" if "/" in text else f"/{text}"


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
    refusals: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    files: dict[str, Text | None] = field(default_factory=dict)
    linked: list[str] = field(default_factory=list)
    met: int = 0

    def resources(self, written: object, pointer: str, level: TemplateLevel, parent: Called | None = None) -> None:
        """Walk the resources of a template or of a resource."""
        if not isinstance(written, list | dict):
            self.refuse(level, pointer, f"{kind_of(written)} where a list of resources should be", "write them out")
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
            if loop is not None:
                message = f"the `copy` of a resource is {kind_of(loop)} where an object should be"
                self.refuse(level, f"{entry.pointer}/copy", message, "give its `name` and `count`")
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
        condition = resolver.value(body.get("condition"))
        if isinstance(condition, Unresolved):
            doubt = doubt or f"its condition is not known: {condition.reason}"
        elif (unfit := _unfit_condition(condition)) and body.get("condition") is not None:
            self.refuse(level, f"{pointer}/condition", unfit, "make it true or false")
        name, kind = resolver.value(body.get("name")), resolver.value(body.get("type"))
        if isinstance(kind, str) and not _is_false(condition) and (misspelt := describe_misspelt("type", kind)):
            self.refuse(level, f"{pointer}/type", misspelt, "write it in ASCII, without spaces", kind="ambiguous")
            return
        base = resolver.value(body.get("scope")) if lowered(str(kind)) != DEPLOYMENT else None
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
        if body.get("resources") is not None:
            self.resources(body["resources"], f"{entry.pointer}/resources", level, names)

    def _remark_keys(self, level: TemplateLevel, body: JsonObject, pointer: str) -> None:
        for key in body:
            if lowered(key) not in _KEYS and lowered(key) != "etag":
                message = f"unknown key `{shortened(key)}`{suggest_nearest(key, _KEYS.values())}"
                self.remarks.append(remark(*_locate_message(level, f"{pointer}/{escaped(key)}", message)))

    def refuse(self, level: TemplateLevel, pointer: str, message: str, remedy: str, kind: PartKind = "part") -> None:
        """Refuse the value at a pointer."""
        place, text = _locate_message(level, pointer, message)
        self.refusals.append(refuse(place, text, remedy, kind))


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


def _unfit_condition(condition: object) -> str:
    """Return why a value is not valid as a condition, or an empty string; a resource with such a condition is judged.

    ARM refuses them: "Evaluation result of language expression is type 'Null', expected type is ...",
    https://github.com/Azure/bicep/issues/16385 and https://github.com/Azure/azure-quickstart-templates/issues/5850.
    """
    if isinstance(condition, bool) or (isinstance(condition, str) and lowered(condition) in ("true", "false")):
        return ""
    return f"the `condition` is {kind_of(condition)} where true or false should be"


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
            if key == "properties":
                value = respell(value, names.arm_type, resolver.fields, there, "/properties")
            resource[key] = value
    if lowered(names.arm_type) == _ROLE_ASSIGNMENT:
        _add_scope(resource, names, reason)
    return PartialResource(resource, names, reason, doubt, resolver.base, resolver.fields)


def _add_scope(resource: JsonObject, names: Called, reason: str) -> None:
    """Add the `scope` that ARM returns for a role assignment: the resource that its id extends."""
    properties = resource.get("properties")
    if isinstance(properties, dict) and properties.get("scope") is None:
        scope = Unresolved(reason, names.base) if "{" in names.base else names.base or "/"
        resource["properties"] = {**properties, "scope": scope}


#: The maximum number of directories of a URI that are tried in a local path.
MAX_FOLDERS = 8

_STAND_IN = re.compile(r"\{[^{}]*\}")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)
_NAME_OF_FILE = re.compile(r"[\w. -]+\.jsonc?", re.IGNORECASE)
_FOLDER = re.compile(r"[\w. -]+")


class Link(NamedTuple):
    """A linked file: its name in messages, and its possible paths relative to the document, most likely first."""

    called: str
    paths: tuple[str, ...]


def link_of(link: object, walk: TemplateWalk, level: TemplateLevel) -> Link:
    """Return the possible paths of a `templateLink` or `parametersLink`; none if it does not name a file."""
    if not isinstance(link, dict):
        return Link("", ())
    folder = f"{level.linked}/" if level.linked else ""
    paths: list[str] = []
    relative = text_of(Resolver(level.scope).value(link.get("relativePath")))
    if relative and not relative.startswith("/") and "{" not in relative:
        paths.append(folder + relative)
    segments, called = _split_uri(text_of(Resolver(level.scope).value(link.get("uri"))))
    own = PurePath(level.text.file if level.text else walk.around.file).name
    for start in range(len(segments)):
        path = "/".join(segments[start:])
        if not (start and path == own):  # another file of the same name
            paths += dict.fromkeys((folder + path, path))
    return Link(paths[0] if relative and paths else called, tuple(paths))


def read_relative_file(walk: TemplateWalk, path: str) -> Text | None:
    """Return a file relative to the document, or None if it cannot be read."""
    if path not in walk.files:
        try:
            walk.files[path] = walk.around.neighbor_text(path)
        except InputError:
            walk.files[path] = None
    return walk.files[path]


def _split_uri(uri: str) -> tuple[list[str], str]:
    """Return the directories and the file at the end of a URI, and their name in messages, without unknown parts."""
    host = _HOST.match(uri)
    pieces = _STAND_IN.split(uri[host.end() :] if host else uri)
    for index in reversed(range(len(pieces))):
        path = re.split(r"[?#]", pieces[index], maxsplit=1)[0]
        if _NAME_OF_FILE.fullmatch(path.rpartition("/")[2]):
            segments = [segment for segment in path.split("/") if segment not in ("", ".")]
            whole = host is not None and not index  # then the directories above the template are not known
            known = _file_and_folders(segments, may_rise=not whole)
            return known, "/".join(known[-2:] if whole else known)
    return [], ""


def _file_and_folders(segments: list[str], *, may_rise: bool) -> list[str]:
    first = len(segments) - 1
    while first and len(segments) - first <= MAX_FOLDERS and _FOLDER.fullmatch(segments[first - 1]):
        if segments[first - 1] == ".." and not may_rise:
            break
        first -= 1
    return segments[first:]


#: The maximum nesting of deployments; ARM has its own limit.
MAX_NESTING = 8
#: The names of a deployment of which only the type matters.
_NAMES = Called(DEPLOYMENT, DEPLOYMENT, "", "", "")


class _DeployedTemplate(NamedTuple):
    """A template that is deployed, its JSON Pointer, and the file and path of a linked one."""

    body: JsonObject
    pointer: str
    text: Text | None = None
    path: str = ""


def deployed(walk: TemplateWalk, body: JsonObject, pointer: str, names: Called, level: TemplateLevel) -> None:
    """Walk the resources of the template that a resource contains; refuse it if it cannot be read."""
    carrier = CARRIERS[lowered(names.arm_type)]
    if level.depth >= MAX_NESTING:
        _refuse(walk, pointer, names, level, f"deployments are nested deeper than {MAX_NESTING} levels", "")
        return
    if carrier.hidden:
        what, _, remedy = carrier.hidden.partition("; ")
        _refuse(walk, pointer, names, level, what, remedy)
        return
    try:
        found = _find_template(walk, body, pointer, level, carrier)
    except InputError as error:
        _refuse(walk, pointer, names, level, error.message, error.remedy)
        return
    if found is None:
        what, _, remedy = _describe_missing(walk, body, level).rpartition("; ")
        _refuse(walk, pointer, names, level, what, remedy)
        return
    if found.text is not None:
        walk.linked.append(found.path)
    if twice := next(find_twice(found.body), None):
        _refuse(walk, pointer, names, level, f"{twice.message}, at `{twice.place}`", twice.remedy)
        return
    inner = _enter_template(walk, body, pointer, found, level, names)
    walk.resources(found.body.get("resources"), f"{found.pointer}/resources", inner)


def _refuse(walk: TemplateWalk, pointer: str, names: Called, level: TemplateLevel, why: str, remedy: str) -> None:
    """Refuse a carrier, and mark the snapshot as incomplete because policies may look up what it contains."""
    name = shortened(names.name)
    if lowered(names.arm_type) == DEPLOYMENT:
        message = f"the template of the deployment `{name}` is not read: {why}"
    else:
        message = f"what `{name}` (`{names.arm_type}`) deploys is not read: {why}"
    walk.incomplete.append(f"{walk.around.file}: {message}{f'; {remedy}' if remedy else ''}")
    walk.refuse(level, pointer, message, remedy)


def with_outputs(template: ArmTemplate, walk: TemplateWalk, level: TemplateLevel) -> None:
    """Make the outputs of deployments available to expressions (`reference('name').outputs.x.value`)."""
    template.scope = replace(template.scope, outputs=_make_output_finder(walk, template, level))


def _enter_template(
    walk: TemplateWalk, body: JsonObject, pointer: str, found: _DeployedTemplate, level: TemplateLevel, names: Called
) -> TemplateLevel:
    """Return the level of the resources in a carrier's template."""
    place = _find_target(body, level, names)
    inner = level._replace(place=place, depth=level.depth + 1, is_root=False)
    if found.text is not None:
        there = level.pointer or f"{pointer}/properties/templateLink"
        inner = inner._replace(linked=found.path.rpartition("/")[0], pointer=there, text=found.text)
    elif not _is_inner(body, level, names):
        return inner
    assigned = _parameter_values(walk, body, found, level)
    template = ArmTemplate(found.body, found.pointer, assigned, place, level.scope.work, is_inner=True)
    inner = inner._replace(scope=template.scope, second=template.is_second_language)
    with_outputs(template, walk, inner)
    return inner._replace(scope=template.scope)


def _is_inner(body: JsonObject, level: TemplateLevel, names: Called) -> bool:
    """Check whether expressions use the template's own parameters; only a deployment in a template can differ."""
    if level.is_root or lowered(names.arm_type) != DEPLOYMENT:
        return True
    options = member(body["properties"], "expressionEvaluationOptions")
    scope = member(options, "scope")
    if isinstance(scope, str) and lowered(scope) in ("inner", "outer"):
        return lowered(scope) == "inner"
    return level.second


def _find_template(
    walk: TemplateWalk, body: JsonObject, pointer: str, level: TemplateLevel, carrier: Carrier
) -> _DeployedTemplate | None:
    """Return the template of a carrier, or None if it is missing.

    Raises:
        InputError: it exists but cannot be read.
    """
    properties = body.get("properties")
    if isinstance(properties, Unresolved):  # of a plan
        raise InputError(f"its `properties` are not known: {properties.reason}")
    stated = template_in(carrier, properties)
    if stated is not None:
        key, template = stated
        if not level.is_root and carrier is not CARRIERS[DEPLOYMENT]:
            template = Resolver(level.scope).value(template)  # ARM evaluates it with the enclosing resource
        return _DeployedTemplate(template_of(template), f"{pointer}/properties/{escaped(key)}")
    for path in link_of(member(properties, "templateLink"), walk, level).paths:
        text = read_relative_file(walk, path)
        linked = text.documents[0][1] if text is not None else None
        try:
            return _DeployedTemplate(template_of(linked), "", text, path)
        except InputError:
            continue
    return None


def _describe_missing(walk: TemplateWalk, body: JsonObject, level: TemplateLevel) -> str:
    """Return which template is missing, and the remedy."""
    if level.is_root:
        return "the document does not contain it; give the template itself"
    link = link_of(member(body.get("properties"), "templateLink"), walk, level)
    if link.paths:
        return f"there is no template `{shortened(link.called)}` next to the file; add it at that path"
    return "the document neither contains it nor links to a local file; compile everything into one template"


def _find_target(body: JsonObject, level: TemplateLevel, names: Called) -> DeploymentTarget:
    """Return what the template of a carrier is deployed to."""
    if CARRIERS[lowered(names.arm_type)].is_stored:
        reason = f"`{shortened(names.name)}` does not state where its template is deployed to"
        return DeploymentTarget(
            f"/subscriptions/{{subscription}}/resourceGroups/{in_braces(f'from {names.id}')}", reason
        )
    resolver = Resolver(level.scope)
    if lowered(names.arm_type) == STACK:
        scope = resolver.value(member(body.get("properties"), "deploymentScope") or names.base)
        if isinstance(scope, Unresolved):
            return DeploymentTarget(scope.text, scope.reason)
        return DeploymentTarget(scope.rstrip("/") if isinstance(scope, str) else names.base, level.place.reason)
    if level.is_root:
        return level.place
    values = {key: resolver.value(body[key]) for key in ("scope", "subscriptionId", "resourceGroup") if key in body}
    reason = next((value.reason for value in values.values() if isinstance(value, Unresolved)), level.place.reason)
    texts = {key: text_of(value).replace("/", "~") for key, value in values.items() if value}
    if "scope" in texts:
        text = text_of(values["scope"]).rstrip("/")
        return DeploymentTarget(text if not text or text.startswith("/") else f"/providers/{text}", reason)
    subscription = level.place.subscription
    if "subscriptionId" in texts:
        subscription = f"/subscriptions/{texts['subscriptionId']}"
    if "resourceGroup" in texts:
        return DeploymentTarget(
            f"{subscription or '/subscriptions/{subscription}'}/resourceGroups/{texts['resourceGroup']}", reason
        )
    return DeploymentTarget(subscription, reason) if "subscriptionId" in texts else level.place


def _parameter_values(
    walk: TemplateWalk, body: JsonObject, found: _DeployedTemplate, level: TemplateLevel
) -> Mapping[str, object]:
    """Return the values of a deployment for the parameters of its template, by name in lower case."""
    properties = body["properties"]
    link = member(properties, "parametersLink")
    if isinstance(link, dict):
        for path in link_of(link, walk, level).paths:
            if text := read_relative_file(walk, path):
                try:
                    return parameters_of(text.documents[0][1], path)
                except InputError:
                    continue
        return _all_unknown(found, "the file of its `parametersLink` is not read; put it next to the template")
    entries = member(properties, "parameters")
    if isinstance(entries, str) and level.is_root:
        try:
            entries = parse_json(entries.encode("utf-8", "surrogatepass"), "parameters", max_bytes=DEFAULT_MAX_BYTES)
        except InputError:
            return _all_unknown(found, "the parameters are text that is not JSON")
    elif isinstance(entries, str):
        entries = Resolver(level.scope).value(entries)
    if isinstance(entries, Unresolved):
        return _all_unknown(found, entries.reason)
    assigned: dict[str, object] = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        is_twice = name.lower() in assigned
        twice = Unresolved(f"the value of the parameter `{shortened(name)}` is stated twice")
        assigned[name.lower()] = twice if is_twice else _parameter_value(name, entry, level)
    return assigned


def _all_unknown(found: _DeployedTemplate, why: str) -> Mapping[str, object]:
    """Return unresolved values for all parameters that a template declares."""
    declared = found.body.get("parameters")
    return dict.fromkeys((name.lower() for name in declared), Unresolved(why)) if isinstance(declared, dict) else {}


def _parameter_value(name: str, entry: object, level: TemplateLevel) -> object:
    """Return one parameter value of a deployment: a `value`, even from a copy loop or expression, or a secret."""
    stated = entry if level.is_root else Resolver(level.scope).value(entry)
    if isinstance(stated, Unresolved):
        return Unresolved(stated.reason)
    if stated is None or isinstance(stated, dict):
        return find_value(name, stated, "not in the nested deployment")
    return Unresolved(f"the value of the parameter `{shortened(name)}` is not an object with a `value`")


def _make_output_finder(
    walk: TemplateWalk, template: ArmTemplate, level: TemplateLevel
) -> Callable[[str, str], object]:
    """Return a function that finds an output of this template's deployments by name, symbolic name or id."""
    index: dict[str, _Deployment] | None = None

    def output(deployment: str, name: str) -> object:
        nonlocal index
        if index is None:
            index = {}  # a name that depends on an output must not recurse
            index |= _index_deployments(walk, template, level)
        folded = lowered(deployment)
        found = index.get(folded) or index.get(folded.rsplit("/", maxsplit=1)[-1])
        return found.output(name) if found is not None else None

    return output


class _Deployment:
    """A deployment of a template that is read when one of its outputs is first requested."""

    def __init__(self, walk: TemplateWalk, body: JsonObject, pointer: str, level: TemplateLevel) -> None:
        self._given = (walk, body, pointer, level)
        self._scope: tuple[TemplateScope, _DeployedTemplate] | None = None
        self._looked_up = False

    def output(self, name: str) -> object:
        """Return the value of an output, or None if the template is not read or refers back to itself."""
        walk, body, pointer, level = self._given
        if not self._looked_up:
            self._looked_up = True
            try:
                found = _find_template(walk, body, pointer, level, CARRIERS[DEPLOYMENT])
            except InputError:
                found = None
            if found is not None and level.depth < MAX_NESTING:
                self._scope = (_enter_template(walk, body, pointer, found, level, _NAMES).scope, found)
        if self._scope is None:
            return None
        scope, found = self._scope
        outputs = found.body.get("outputs")
        entry = member(outputs, name)
        resolver = Resolver(scope, f"{found.pointer}/outputs/{escaped(name)}")
        if not isinstance(entry, dict):
            return None
        if entry.get("condition") is not None and resolver.value(entry["condition"]) is not True:
            return None
        return resolver.value(entry.get("value"))  # null has no `value`: https://github.com/Azure/bicep/issues/13160


def _index_deployments(walk: TemplateWalk, template: ArmTemplate, level: TemplateLevel) -> dict[str, _Deployment]:
    found: dict[str, _Deployment] = {}
    inner = level._replace(scope=template.scope)
    for entry in entries_of(template.body.get("resources"), f"{template.pointer}/resources"):
        body = entry.body
        kind = body.get("type") if isinstance(body, dict) else None
        if isinstance(body, dict) and isinstance(kind, str) and lowered(kind) == DEPLOYMENT:
            if "copy" in body:
                continue
            one = _Deployment(walk, body, entry.pointer, inner)
            name = text_of(Resolver(template.scope).value(body.get("name", "")))
            for key in filter(None, (entry.symbol, name)):
                found.setdefault(lowered(key), one)
    return found
