"""An ARM estate as a template: literal, through parameters, variables, functions, copies, children and deployments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from policyeng.models import JsonObject

SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
#: What the template is deployed to.
SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"

_GROUP = re.compile(r"(?i)/subscriptions/([^/]+)/resourceGroups/([^/]+)")
#: What a template takes for its own in addition to the keys of resources.
_KEYWORDS = ("apiVersion", "comments", "condition", "copy", "dependsOn", "resources", "scope")


def expressible(resource: JsonObject) -> bool:
    """Whether a template can state it: what is deployed to a resource group or subscription, or extends such."""
    here = str(resource["id"]).startswith("/subscriptions/") and "/providers/" in resource["id"]
    return here and resource.keys().isdisjoint(_KEYWORDS)


def loses(_: JsonObject) -> Sequence[str]:
    """Nothing."""
    return ()


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """One template for the resource group of `SCOPE`; what lies elsewhere is in nested templates."""
    here = [resource for resource in resources if expressible(resource) and _home(resource) == SCOPE]
    template = _Writer().template(here)
    away: dict[str, list[JsonObject]] = {}
    for resource in resources:
        if expressible(resource) and _home(resource) != SCOPE:
            away.setdefault(_home(resource), []).append(resource)
    template["resources"] += [_deployment(number, *entry) for number, entry in enumerate(away.items())]
    return {"main.json": json.dumps(template, indent=2).encode()}


def _home(resource: JsonObject) -> str:
    """The id of the resource group or subscription that a resource is deployed to."""
    return str(resource["id"]).split("/providers/", maxsplit=1)[0]


def _deployment(number: int, home: str, resources: list[JsonObject]) -> JsonObject:
    writer = _Writer()
    inner = writer.template(resources)
    values = {name: {"value": entry.pop("defaultValue", None)} for name, entry in inner["parameters"].items()}
    group = _GROUP.fullmatch(home)
    place = {"subscriptionId": home.split("/")[2]} | ({"resourceGroup": group[2]} if group else {})
    return {
        "type": "Microsoft.Resources/deployments",
        "apiVersion": "2022-09-01",
        "name": f"elsewhere-{number}",
        **place,
        "properties": {
            "mode": "Incremental",
            "expressionEvaluationOptions": {"scope": "inner"},
            "parameters": values,
            "template": inner,
        },
    }


class _Writer:
    """Writes one template; every value in another way than the one before."""

    def __init__(self) -> None:
        self.turn = 0
        self.parameters: JsonObject = {}
        self.variables: JsonObject = {}

    def template(self, resources: Iterable[JsonObject]) -> JsonObject:
        written: list[JsonObject] = []
        by_id: dict[str, JsonObject] = {}
        for resource in sorted(resources, key=lambda entry: str(entry["id"]).count("/")):
            parent = by_id.get(str(resource["id"]).rsplit("/", 2)[0])
            if parent is not None and self._next(2):
                entry = self._resource(resource, child=True)
                parent.setdefault("resources", []).append(entry)
            else:
                entry = self._resource(resource, child=False)
                written.append(entry)
            by_id[resource["id"]] = entry
        return {
            "$schema": SCHEMA,
            "contentVersion": "1.0.0.0",
            "parameters": self.parameters,
            "variables": self.variables,
            "resources": written,
        }

    def _next(self, forms: int) -> int:
        self.turn += 1
        return self.turn % forms

    def _resource(self, resource: JsonObject, *, child: bool) -> JsonObject:
        outer, _, tail = resource["id"].rpartition("/providers/")
        provider, *rest = tail.split("/")
        kinds, names = rest[::2], rest[1::2]
        written: JsonObject = {"apiVersion": "2024-10-01"}
        if child:
            written |= {"type": kinds[-1], "name": self._text(names[-1])}
        else:
            written |= {"type": "/".join([provider, *kinds]), "name": self._joined(names)}
        if outer != _home(resource):
            written["scope"] = self._text(outer)
        for key, value in resource.items():
            if key == "properties":
                written[key] = self._properties(value)
            elif key not in ("id", "name", "type"):
                written[key] = self._value(value)
        return written

    def _joined(self, names: list[str]) -> str:
        quoted = [f"'{_quoted(name)}'" for name in names]
        if len(names) == 1:
            return str(self._value(names[0]))
        pattern = "/".join(f"{{{index}}}" for index in range(len(names)))
        separated = ", '/', ".join(quoted)
        return (
            "/".join(names),
            f"[concat({separated})]",
            f"[format('{pattern}', {', '.join(quoted)})]",
            f"[join(createArray({', '.join(quoted)}), '/')]",
        )[self._next(4)]

    def _properties(self, value: object) -> object:
        if not isinstance(value, dict):
            return self._value(value)
        if self._next(6) == 0:
            return self._declared("variables", self._inside(value))
        return self._inside(value)

    def _inside(self, value: object) -> object:
        if isinstance(value, dict):
            made: JsonObject = {_escaped(key): self._inside(inner) for key, inner in value.items()}
            lists = [key for key, inner in value.items() if isinstance(inner, list) and inner]
            if lists and "copy" not in made and self._next(2):
                key = lists[0]
                made.pop(_escaped(key))
                name = f"entries{len(self.variables)}"
                self.variables[name] = [self._inside(entry) for entry in value[key]]
                loop = {"name": key, "count": f"[length(variables('{name}'))]"}
                made["copy"] = [{**loop, "input": f"[variables('{name}')[copyIndex('{_quoted(key)}')]]"}]
            return made
        if isinstance(value, list):
            return [self._inside(entry) for entry in value]
        return self._value(value)

    def _value(self, value: object) -> object:
        form = self._next(6)
        if form == 1:
            return self._declared("parameters", _literal(value))
        if form == 2:
            return self._declared("variables", _literal(value))
        if form == 3 and isinstance(value, bool):
            return f"[{'true' if value else 'false'}()]"
        if form == 3 and isinstance(value, int) and abs(value) < 10**15:
            return f"[int('{value}')]"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {_escaped(key): self._value(inner) for key, inner in value.items()}
        return [self._value(entry) for entry in value] if isinstance(value, list) else value

    def _text(self, value: str) -> str:
        provider, *rest = value.removeprefix(f"{SCOPE}/providers/").split("/")
        if value.startswith(f"{SCOPE}/providers/") and "providers" not in rest and len(rest) % 2 == 0 and all(rest):
            names = ", ".join(f"'{_quoted(name)}'" for name in rest[1::2])
            _, _, subscription, _, group = SCOPE.split("/")
            return f"[resourceId('{subscription}', '{group}', '{provider}/{'/'.join(rest[::2])}', {names})]"
        form = self._next(5)
        if form == 1:
            return f"[if(equals(1, 1), '{_quoted(value)}', reference('nothing'))]"
        if form == 2:
            return f"[concat('{_quoted(value[:3])}', '{_quoted(value[3:])}')]"
        if form == 3:
            return f"[coalesce(null(), '{_quoted(value)}')]"
        return _escaped(value)

    def _declared(self, kind: str, written: object) -> str:
        holder = self.parameters if kind == "parameters" else self.variables
        name = f"value{len(holder)}"
        types = {str: "string", bool: "bool", int: "int", list: "array"}
        value = {"nullable": True} if written is None else {"defaultValue": written}  # a default cannot be null
        entry = {"type": types.get(type(written), "object"), **value}
        holder[name] = entry if kind == "parameters" else written
        return f"[{kind}('{name}')]"


def _literal(value: object) -> object:
    """A value as a template writes it without evaluating anything."""
    if isinstance(value, dict):
        return {_escaped(key): _literal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_literal(entry) for entry in value]
    return _escaped(value) if isinstance(value, str) else value


def _escaped(text: str) -> str:
    return f"[{text}" if text.startswith("[") and text.endswith("]") else text


def _quoted(text: str) -> str:
    return text.replace("'", "''")
