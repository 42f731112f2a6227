"""Templates that a template deploys: inline ones in either scope of evaluation, and linked ones that lie beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_template.links import beside, link_of
from policyeng.sources.arm_template.naming import Called
from policyeng.sources.arm_template.resolving import Resolver
from policyeng.sources.arm_template.scopes import Place, Scope
from policyeng.sources.arm_template.templates import Template
from policyeng.sources.arm_template.values import text_of
from policyeng.sources.arm_template.walking import Level, Walk, entries_of
from policyeng.sources.template_parameters import Unresolved, parameters_of
from policyeng.sources.texts import Text
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import shortened

#: Deployments inside one another; ARM itself has a limit of its own.
MAX_NESTING = 8


class _Found(NamedTuple):
    """A template that is deployed, its JSON Pointer, and of a linked one its file and the path of that."""

    body: JsonObject
    pointer: str
    text: Text | None = None
    path: str = ""


def deployed(walk: Walk, body: JsonObject, pointer: str, names: Called, level: Level) -> None:
    """Walk the resources of the template that a deployment deploys; say where it is missing."""
    if level.depth >= MAX_NESTING:
        message = f"deployments are nested deeper than {MAX_NESTING} levels"
        walk.incomplete.append(f"{walk.around.file}: {message}; what lies there is not judged")
        return
    found = _template_of(walk, body, pointer, level)
    if found is None:
        what = _wanted(walk, body, level)
        message = f"the template of the deployment `{shortened(names.name)}` is not read: {what}"
        walk.incomplete.append(f"{walk.around.file}: {message}")
        return
    if found.text is not None:
        walk.linked.append(found.path)
    inner = _inside(walk, body, pointer, found, level)
    walk.resources(found.body.get("resources"), f"{found.pointer}/resources", inner)


def with_outputs(template: Template, walk: Walk, level: Level) -> None:
    """Let the template's expressions see what its deployments give (`reference('name').outputs.x.value`)."""
    template.scope = replace(template.scope, outputs=_outputs(walk, template, level))


def _inside(walk: Walk, body: JsonObject, pointer: str, found: _Found, level: Level) -> Level:
    """The level of the resources of a deployed template."""
    place = _place(body, level)
    inner = level._replace(place=place, depth=level.depth + 1)
    if found.text is not None:
        there = level.pointer or f"{pointer}/properties/templateLink"
        inner = inner._replace(linked=found.path.rpartition("/")[0], pointer=there, text=found.text)
    elif not _is_inner(body, level):
        return inner
    given = _given(walk, body, found, level)
    template = Template(found.body, found.pointer, given, place, level.scope.work, is_inner=True)
    inner = inner._replace(scope=template.scope, second=template.is_second_language)
    with_outputs(template, walk, inner)
    return inner._replace(scope=template.scope)


def _is_inner(body: JsonObject, level: Level) -> bool:
    properties = body["properties"]
    options = properties.get("expressionEvaluationOptions")
    scope = options.get("scope") if isinstance(options, dict) else None
    if isinstance(scope, str) and lowered(scope) in ("inner", "outer"):
        return lowered(scope) == "inner"
    return level.second


def _template_of(walk: Walk, body: JsonObject, pointer: str, level: Level) -> _Found | None:
    properties = body.get("properties")
    if not isinstance(properties, dict):
        return None
    template = properties.get("template")
    if isinstance(template, dict):
        return _Found(template, f"{pointer}/properties/template")
    for path in link_of(properties.get("templateLink"), walk, level).paths:
        text = beside(walk, path)
        linked = text.documents[0][1] if text is not None else None
        if isinstance(linked, dict) and isinstance(linked.get("resources"), list | dict):
            return _Found(linked, "", text, path)
    return None


def _wanted(walk: Walk, body: JsonObject, level: Level) -> str:
    """Which template is missing, and what to do."""
    properties = body.get("properties")
    link = link_of(properties.get("templateLink"), walk, level) if isinstance(properties, dict) else None
    if link is not None and link.paths:
        return f"there is no template `{shortened(link.called)}` beside the file; put it there, by that path"
    return "the document does not hold it, and names no file that may lie beside; compile everything into one template"


def _place(body: JsonObject, level: Level) -> Place:
    """What the template of a deployment is deployed to."""
    resolver = Resolver(level.scope)
    values = {key: resolver.value(body[key]) for key in ("scope", "subscriptionId", "resourceGroup") if key in body}
    reason = next((value.reason for value in values.values() if isinstance(value, Unresolved)), level.place.reason)
    said = {key: text_of(value).replace("/", "~") for key, value in values.items() if value}
    if "scope" in said:
        text = text_of(values["scope"]).rstrip("/")
        return Place(text if not text or text.startswith("/") else f"/providers/{text}", reason)
    subscription = level.place.subscription
    if "subscriptionId" in said:
        subscription = f"/subscriptions/{said['subscriptionId']}"
    if "resourceGroup" in said:
        return Place(
            f"{subscription or '/subscriptions/{subscription}'}/resourceGroups/{said['resourceGroup']}", reason
        )
    return Place(subscription, reason) if "subscriptionId" in said else level.place


def _given(walk: Walk, body: JsonObject, found: _Found, level: Level) -> Mapping[str, object]:
    """The values that a deployment gives the parameters of its template, by name in lower case."""
    properties = body["properties"]
    link = properties.get("parametersLink")
    if isinstance(link, dict):
        for path in link_of(link, walk, level).paths:
            if text := beside(walk, path):
                try:
                    return parameters_of(text.documents[0][1], path)
                except InputError:
                    continue
        declared = found.body.get("parameters")
        unknown = Unresolved("the file of its `parametersLink` is not read; put it beside the template")
        return dict.fromkeys((name.lower() for name in declared), unknown) if isinstance(declared, dict) else {}
    entries = properties.get("parameters")
    if isinstance(entries, str):
        entries = Resolver(level.scope).value(entries)
    given: dict[str, object] = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        given[name.lower()] = _stated(name, entry, level.scope)
    return given


def _stated(name: str, entry: object, scope: Scope) -> object:
    """One value that a deployment gives: `{"value"}`, made by a copy or an expression, too, or a secret's place."""
    stand_in = f"{{{name.replace('/', '~')}}}"
    if isinstance(entry, dict) and "reference" in entry:
        return Unresolved(f"the value of the parameter `{shortened(name)}` is a secret of a key vault", stand_in)
    stated = Resolver(scope).value(entry)
    if isinstance(stated, dict) and "value" in stated:
        return stated["value"]
    if isinstance(stated, Unresolved):
        return Unresolved(stated.reason, stand_in)
    return Unresolved(f"the nested deployment states no value of the parameter `{shortened(name)}`", stand_in)


def _outputs(walk: Walk, template: Template, level: Level) -> Callable[[str, str], object]:
    """What gives the output of a deployment of this template, by the deployment's name, symbolic name or id."""
    index: dict[str, _Deployment] | None = None

    def output(deployment: str, name: str) -> object:
        nonlocal index
        if index is None:
            index = {}  # a name that is made of an output finds none
            index |= _index(walk, template, level)
        folded = lowered(deployment)
        found = index.get(folded) or index.get(folded.rsplit("/", maxsplit=1)[-1])
        return found.output(name) if found is not None else None

    return output


class _Deployment:
    """A deployment of a template, read once when an output of it is asked for."""

    def __init__(self, walk: Walk, body: JsonObject, pointer: str, level: Level) -> None:
        self._given = (walk, body, pointer, level)
        self._scope: tuple[Scope, _Found] | None = None
        self._asked = False

    def output(self, name: str) -> object:
        """The value of an output; None where the template is not read, or leads back here."""
        walk, body, pointer, level = self._given
        if not self._asked:
            self._asked = True
            found = _template_of(walk, body, pointer, level) if level.depth < MAX_NESTING else None
            if found is not None:
                self._scope = (_inside(walk, body, pointer, found, level).scope, found)
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


def _index(walk: Walk, template: Template, level: Level) -> dict[str, _Deployment]:
    found: dict[str, _Deployment] = {}
    inner = level._replace(scope=template.scope)
    for entry in entries_of(template.body.get("resources"), f"{template.pointer}/resources"):
        body = entry.body
        kind = body.get("type") if isinstance(body, dict) else None
        if isinstance(body, dict) and isinstance(kind, str) and lowered(kind) == "microsoft.resources/deployments":
            if "copy" in body:
                continue
            one = _Deployment(walk, body, entry.pointer, inner)
            name = text_of(Resolver(template.scope).value(body.get("name", "")))
            for key in filter(None, (entry.symbol, name)):
                found.setdefault(lowered(key), one)
    return found
