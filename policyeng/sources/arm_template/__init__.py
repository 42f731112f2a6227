"""ARM templates, hand-written or compiled from Bicep: every resource that they deploy, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePath

from msgspec.structs import replace

from policyeng.errors import InputError
from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, SourceNames, lowered
from policyeng.parsing.json_pointer import filled, keys_of
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import attached, service_made
from policyeng.sources.arm_template.evaluator import Resolver, remove_unknown
from policyeng.sources.arm_template.expressions import DeploymentTarget, ExpressionBudget, TemplateScope
from policyeng.sources.arm_template.resources import (
    PartialResource,
    TemplateLevel,
    TemplateWalk,
    deployed,
    name_resource,
    with_known_keys,
    with_outputs,
)
from policyeng.sources.arm_template.templates import ArmTemplate
from policyeng.sources.parsed import (
    ALONE,
    UNKNOWN_SCOPE,
    ParsedDocument,
    Placed,
    Surroundings,
    move_pointers,
    reading_of,
    refuse,
    remark,
)
from policyeng.sources.templates import Unresolved, find_twice, member, parameters_of, template_of

SUMMARY = "ARM templates, including those compiled from Bicep"

_UNPLACED = "the subscription and resource group of the deployment are not known; give `--scope`"
#: The kind of scope that templates of each schema are deployed to.
_SCHEMAS = {
    "deploymenttemplate.json": "group",
    "subscriptiondeploymenttemplate.json": "subscription",
    "managementgroupdeploymenttemplate.json": "management group",
    "tenantdeploymenttemplate.json": "tenant",
}
SHAPES: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("$schema", "apiprofile", "asserts", "contentversion", "definitions", "extensions", "functions"),
            *("imports", "languageversion", "metadata", "outputs", "parameters", "resources", "variables"),
        }
    ),
    frozenset({"error", "output", "template"}),
)


def detect(document: object) -> bool:
    """Check whether the document is a template, a parameter file or an exported template."""
    if not isinstance(document, dict):
        return False
    return _schema(document) in _SCHEMAS or _is_parameters(document) or _exported_template(document) is not None


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:
    """Read a template; what is known only at deployment is unreadable, with the expression and its cause."""
    if not isinstance(document, dict):
        return ParsedDocument(problems=(refuse("", f"not a template: {kind_of(document)}", "give a JSON object"),))
    if (exported := _exported_template(document)) is not None:
        return _add_export_error(move_pointers(read(exported, around), "/template"), document.get("error"), around)
    if twice := next(find_twice(document), None):
        return ParsedDocument(problems=(twice,))
    if _is_parameters(document):
        return ParsedDocument(nothing="values of template parameters; they are used with their template")
    try:
        document = template_of(document)
    except InputError as error:
        return ParsedDocument(problems=(refuse("/resources", error.message, error.remedy),))
    place, movable = _find_target(document, around)
    walk = TemplateWalk(around, deployed)
    stated = {name.lower(): value for name, value in around.parameters.items()}
    values = {
        **dict.fromkeys(stated),
        **_read_parameter_file(document, walk),
        **{name: value for name, value in stated.items() if value is not None},
    }
    template = ArmTemplate(document, "", values, place, ExpressionBudget())
    walk.remarks += [remark("/parameters" * ("parameters" in document), text) for text in template.unknown_parameters()]
    level = TemplateLevel(template.scope, place, second=template.is_second_language)
    with_outputs(template, walk, level)
    walk.resources(document["resources"], "/resources", level._replace(scope=template.scope))
    reading = reading_of([*_place_resources(walk.drafts, place), *walk.refusals])
    return ParsedDocument(
        resources=reading.resources,
        incomplete=tuple(dict.fromkeys(walk.incomplete)),
        problems=(*reading.problems, *dict.fromkeys((*walk.remarks, *template.remarks))),
        nothing="" if walk.drafts or walk.refusals or walk.incomplete else "a template that deploys no resources",
        movable=movable,
        linked=tuple(dict.fromkeys(walk.linked)),
    )


class Contents:
    """A reader of the templates that the resources of one document contain, within the limits of one document."""

    def __init__(self, file: str = "") -> None:
        """Start a document; `file` is its name in messages."""
        self._file = file

    @cached_property
    def _walk(self) -> TemplateWalk:
        return TemplateWalk(Surroundings(file=self._file), deployed)

    @cached_property
    def _outside(self) -> TemplateScope:
        """The scope of expressions outside of any template."""
        return ArmTemplate({}, "", {}, DeploymentTarget(""), ExpressionBudget()).scope

    def read(self, resource: JsonObject, unreadable: Mapping[str, str]) -> ParsedDocument:
        """Read the template of a resource as if it were a document; pointers are into the resource.

        Args:
            resource: in the shape of ARM, of a type among `CARRIERS`.
            unreadable: by JSON Pointer into it, why a part is not known.
        """
        identity: str = resource["id"]
        if lowered(resource["type"]) not in types_of(identity):
            message = f"`{shortened(identity)}` is not the id of a `{shortened(resource['type'])}`"
            return ParsedDocument(problems=(refuse("", message, "correct the one that is wrong"),))
        body: object = resource
        for at, why in unreadable.items():
            if lowered(at).startswith(("/properties", "/kind")):
                body = filled(body, keys_of(at), Unresolved(why, "{unknown}"))
        start = lowered(identity).rfind("/providers/")
        base, named = identity[:start], identity[start + len("/providers/") :].split("/")
        place = DeploymentTarget(base, unreadable.get("/id", _UNPLACED) if "{" in base else "")
        level = TemplateLevel(self._outside, place, doubt=unreadable.get("", ""), is_root=True)
        walk = self._walk
        walk.drafts, walk.refusals, walk.remarks, walk.incomplete = [], [], [], []
        names = name_resource(resource["type"], "/".join(named[2::2]), None, base)
        known = with_known_keys(body if isinstance(body, dict) else {}, Resolver(self._outside))
        deployed(walk, known, "", names, level)
        reading = reading_of([*_place_resources(walk.drafts, place), *walk.refusals])
        return replace(reading, incomplete=tuple(walk.incomplete), problems=(*reading.problems, *walk.remarks))


def _exported_template(document: JsonObject) -> JsonObject | None:
    """Return the template in the response of `exportTemplate` for a resource group."""
    inner = document.get("template")
    return inner if isinstance(inner, dict) and _schema(inner) in _SCHEMAS else None


def _add_export_error(reading: ParsedDocument, error: object, around: Surroundings) -> ParsedDocument:
    """Mark the reading of an exported template as incomplete if the export ended with an error."""
    if not isinstance(error, dict):
        return reading
    details = [shortened(str(error[key]), 200) for key in ("code", "message") if error.get(key)]
    line = f"{around.file}: the export omitted resources: {': '.join(details) or 'it ended with an error'}"
    return replace(reading, incomplete=(*reading.incomplete, line), nothing="")


def _schema(document: JsonObject) -> str:
    schema = member(document, "$schema")
    return lowered(schema).strip().rstrip("#").rsplit("/", maxsplit=1)[-1] if isinstance(schema, str) else ""


def _is_parameters(document: JsonObject) -> bool:
    return _schema(document).endswith("deploymentparameters.json")


def _find_target(document: JsonObject, around: Surroundings) -> tuple[DeploymentTarget, str]:
    """Return what the template is deployed to, and the beginning of its ids that is not stated."""
    kind = _SCHEMAS.get(_schema(document), "group")
    reason = _UNPLACED if "{" in around.scope else ""
    if kind == "group":
        return DeploymentTarget(around.scope, reason), UNKNOWN_SCOPE if around.scope == UNKNOWN_SCOPE else ""
    if kind == "subscription":
        whole = DeploymentTarget(around.scope, reason).subscription
        return DeploymentTarget(whole, reason if "{" in whole else ""), whole if "{" in whole else ""
    if kind == "tenant":
        return DeploymentTarget(""), ""
    group = "/providers/Microsoft.Management/managementGroups/{managementGroup}"
    return DeploymentTarget(group, "the management group of the deployment is not known"), group


def _read_parameter_file(document: JsonObject, walk: TemplateWalk) -> Mapping[str, object]:
    """Return the values in the parameter file next to the template, by name in lower case."""
    path = PurePath(walk.around.file)
    if not document.get("parameters") or path.suffix.lower() not in (".json", ".jsonc"):
        return {}
    values: Mapping[str, object] = {}
    taken = ""
    for name in (f"{path.stem}.parameters{suffix}" for suffix in (".json", ".jsonc")):
        try:
            values, taken = parameters_of(walk.around.neighbor(name), name), name
        except InputError:
            continue
        walk.remarks.append(
            remark("", f"parameters without a value in `--parameters` take it from `{name}` in the same directory")
        )
        break
    others = [name for name in walk.around.neighbor_names() if name != taken and _is_parameter_file(name, path.stem)]
    if others and not walk.around.parameters:
        named = ", ".join(f"`{shortened(name)}`" for name in others[:8])
        remedy = "to use one of them, give it as `--parameters`"
        walk.remarks.append(remark("", f"the directory has other parameter files: {named}; {remedy}"))
    return values


def _is_parameter_file(name: str, stem: str) -> bool:
    folded = name.lower()
    return folded.startswith(f"{stem.lower()}.") and ".param" in folded and folded.endswith((".json", ".jsonc"))


def _place_resources(drafts: Iterable[PartialResource], place: DeploymentTarget) -> list[Placed]:
    taken: set[str] = set()
    identities: list[str] = []
    for draft in drafts:
        identity = draft.names.id
        if lowered(identity) in taken and (draft.reason or draft.doubt):
            mark = draft.pointer.replace("/", "~")
            identity = f"{identity.removesuffix('}')}@{mark}" + "}" * identity.endswith("}")
            while lowered(identity) in taken:
                identity += "'"
        taken.add(lowered(identity))
        identities.append(identity)
    known = frozenset(taken)
    return [_place_resource(draft, identity, known, place) for draft, identity in zip(drafts, identities, strict=True)]


def _place_resource(draft: PartialResource, identity: str, known: frozenset[str], place: DeploymentTarget) -> Placed:
    value, unreadable = remove_unknown(draft.resource, known, place.id)
    body = value if isinstance(value, dict) else {}
    why = {"": draft.doubt} if draft.doubt else {}
    if draft.reason:
        why["/id"] = draft.reason
    why |= {**service_made(draft.names.arm_type), **unreadable}
    resource: JsonObject = {**body, "id": identity}  # a template cannot state an id
    names = SourceNames(address=draft.address, base=draft.pointer)  # fields have the names of ARM
    return Placed(attached(resource, why), draft.pointer, why, None, draft.fields, draft.text, names)
