"""Templates that a template deploys: inline ones in either evaluation scope, and linked ones in local files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.frozen import replace
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json, shortened
from policyeng.sources.arm_template.resolver import Resolver
from policyeng.sources.arm_template.resource_ids import Called
from policyeng.sources.arm_template.resources import TemplateLevel, TemplateWalk, entries_of
from policyeng.sources.arm_template.scope import DeploymentTarget, TemplateScope
from policyeng.sources.arm_template.templates import ArmTemplate
from policyeng.sources.arm_template.unresolved import in_braces, text_of
from policyeng.sources.template_carriers import (
    CARRIERS,
    DEPLOYMENT,
    STACK,
    Carrier,
    member,
    template_in,
    template_of,
)
from policyeng.sources.template_parameters import Unresolved, parameters_of
from policyeng.sources.text import Text

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
    relative = text_of(Resolver(level.scope).value(link.get("relativePath", "")))
    if relative and not relative.startswith("/") and "{" not in relative:
        paths.append(folder + relative)
    segments, called = _split_uri(text_of(Resolver(level.scope).value(link.get("uri", ""))))
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
            walk.files[path] = walk.around.text_beside(path)
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
    stand_in = f"{{{name.replace('/', '~')}}}"
    if isinstance(entry, dict) and "reference" in entry:
        return Unresolved(f"the value of the parameter `{shortened(name)}` is a secret of a key vault", stand_in)
    stated = entry if level.is_root else Resolver(level.scope).value(entry)
    if isinstance(stated, dict) and "value" in stated:
        return stated["value"]
    if isinstance(stated, Unresolved):
        return Unresolved(stated.reason, stand_in)
    return Unresolved(f"the nested deployment states no value of the parameter `{shortened(name)}`", stand_in)


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
        self._asked = False

    def output(self, name: str) -> object:
        """Return the value of an output, or None if the template is not read or refers back to itself."""
        walk, body, pointer, level = self._given
        if not self._asked:
            self._asked = True
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
        entry = (
            next((entry for key, entry in outputs.items() if lowered(key) == lowered(name)), None)
            if isinstance(outputs, dict)
            else None
        )
        if not (isinstance(entry, dict) and "value" in entry):
            return None
        return Resolver(scope, f"{found.pointer}/outputs/{escaped(name)}").value(entry["value"])


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
