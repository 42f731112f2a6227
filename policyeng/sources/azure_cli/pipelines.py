"""The steps of a pipeline in ARM shape: inline, or in component files, at any depth.

A step has the CLI's keys below `resources`, `distribution` and `limits`, because the CLI sends them unchanged
(azure-ai-ml 1.35.2, `entities/_builders/*.py`, `_to_rest_object`). The `resources` and `distribution` of a component
apply if the step has none (`_builders/command.py`). The steps of a nested pipeline become steps of the outer pipeline,
`outer.inner`, because they are what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.azure_cli.converter import convert_object, is_open
from policyeng.sources.azure_cli.references import an_object, asset_in, compute_in, file_of, is_label
from policyeng.sources.azure_cli.value_converters import prose
from policyeng.sources.field_mapping import FieldMapping, put_value, text
from policyeng.sources.parsed import Surroundings, format_value, kind_of

#: Limits for nested pipelines: depth, steps and component files in total.
MAX_DEPTH = 8
MAX_STEPS = 2_000
MAX_FILES = 200

_BINDING = re.compile(r"\$\{\{\s*parent\.inputs\.(\w+)\s*\}\}")
#: Keys that a step takes from its component if it does not have them itself.
_INHERITED = ("resources", "distribution")
#: Keys in which a binding to a pipeline input is resolved, because policies check them.
_BOUND = ("compute", "resources", "distribution", "limits")


class PipelineSteps(NamedTuple):
    """The steps of a pipeline.

    Attributes:
        properties: `jobs` and `componentId` of the pipeline's ARM `properties`, if any.
        fields, unreadable: by ARM pointer, as in `Placed`; the places are in the pipeline's document.
    """

    properties: Mapping[str, object] = {}
    fields: Mapping[str, str] = {}
    unreadable: Mapping[str, str] = {}


class _Component(NamedTuple):
    """The document of a component, or why there is none."""

    body: JsonObject
    folder: str = ""
    why: str = ""


class _Within(NamedTuple):
    """The context of steps: the key and place of the enclosing step, and what they inherit from it."""

    prefix: str
    place: str
    folder: str
    inputs: Mapping[str, object]
    compute: object
    depth: int


def steps_of(document: JsonObject, around: Surroundings) -> PipelineSteps:
    """Return the steps of a pipeline job, or of the pipeline component that it names."""
    gathering = _Gathering(around)
    reference = document.get("component")
    inputs = _values(document.get("inputs"))
    if reference is None:
        gathering.gather(document.get("jobs"), _Within("", "/jobs", "", inputs, None, 0))
    else:
        gathering.gather_component(reference, inputs)
    properties: JsonObject = {}
    for target, value in gathering.found.items():
        put_value(properties, target.removeprefix("/properties"), value)
    if gathering.full:
        return PipelineSteps(unreadable={"/properties/jobs": gathering.full})
    return PipelineSteps(properties, gathering.fields, gathering.unreadable)


def _table(workspace: str) -> tuple[FieldMapping, ...]:
    return (
        FieldMapping("/type", "/type", text),
        FieldMapping("/display_name", "/display_name", prose),
        FieldMapping("/compute", "/computeId", compute_in(workspace)),
        FieldMapping("/compute/target", "/computeId", compute_in(workspace)),
        FieldMapping("/component", "/componentId", asset_in(workspace, "components")),
        FieldMapping("/resources", "/resources", an_object),
        FieldMapping("/distribution", "/distribution", an_object),
        FieldMapping("/limits", "/limits", an_object),
        FieldMapping("/trial/component", "/trial/componentId", asset_in(workspace, "components")),
        FieldMapping("/trial/resources", "/trial/resources", an_object),
        FieldMapping("/trial/distribution", "/trial/distribution", an_object),
        FieldMapping("/tags", "/tags", prose),
        FieldMapping("/identity", "/identity", prose),
        FieldMapping("/environment_variables", "/environment_variables", prose),
    )


@dataclass(slots=True)
class _Gathering:
    """The steps collected so far; everything is by ARM pointer."""

    around: Surroundings
    found: dict[str, object] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    files: dict[str, object] = field(default_factory=dict)
    steps: int = 0
    full: str = ""

    def gather_component(self, reference: object, inputs: Mapping[str, object]) -> None:
        """Add the steps of the component that a pipeline job names instead of its own steps."""
        component = self.component(reference, "")
        self.fields["/properties/jobs"] = "/component"
        if component.why and is_pinned(reference):
            self.found["/properties/componentId"] = asset_in(self.around.workspace, "components")(reference)
        elif component.why:
            self.unreadable["/properties/jobs"] = component.why
        else:
            inner = {**_values(component.body.get("inputs")), **inputs}
            self.gather(component.body.get("jobs"), _Within("", "/component", component.folder, inner, None, 1))

    def gather(self, jobs: object, within: _Within) -> None:
        """Add the steps of a pipeline and of its nested pipelines."""
        if not isinstance(jobs, dict):
            self.unreadable["/properties/jobs"] = f"`jobs` is {kind_of(jobs)}; it should be an object of steps"
            return
        for key, step in jobs.items():
            self.steps += 1
            if self.steps > MAX_STEPS:
                self.full = f"the pipeline has more than {MAX_STEPS:,} steps, the most that are read"
                return
            place = f"{within.place}/{escaped(key)}" if not within.depth else within.place
            target = f"/properties/jobs/{escaped(within.prefix + key)}"
            self.fields[target] = place
            if isinstance(step, dict):
                self._step(step, target, within._replace(prefix=within.prefix + key, place=place))
            else:
                self.unreadable[target] = f"`{key}` is {kind_of(step)}; a step should be an object"

    def _step(self, written: JsonObject, target: str, within: _Within) -> None:
        step = _bind_inputs(written, within.inputs)
        component = self.component(step["component"], within.folder) if step.get("component") else _Component({})
        kind = _kind(step, component)
        inner = component.body.get("jobs")
        if kind == "pipeline" and isinstance(inner, dict):
            self._pipeline(step, component, target, within)
            return
        if step.get("compute") is None and within.compute is not None:
            step["compute"] = within.compute
        self._inherit(step, component, target, kind)
        trial = step.get("trial")
        if trial is not None and not (isinstance(trial, dict) and not trial.get("component")):
            self._trial(step, trial, target, within.folder)
        done = convert_object(_table(self.around.workspace), step, within.place)
        self.found[target] = {**({"type": kind} if kind else {}), **done.resource}
        nested = within.depth > 0
        self.fields |= {target + at: within.place if nested else place for at, place in done.fields.items()}
        self.unreadable |= {target + at: reason for at, reason in done.unreadable.items() if "componentId" not in at}

    def _pipeline(self, step: JsonObject, component: _Component, target: str, within: _Within) -> None:
        if within.depth >= MAX_DEPTH:
            self.unreadable[target] = f"pipelines are nested more than {MAX_DEPTH} levels deep, the most that are read"
            return
        inputs = {**_values(component.body.get("inputs")), **_bind_values(step.get("inputs"), within.inputs)}
        compute = within.compute if step.get("compute") is None else step["compute"]
        del self.fields[target]
        self.gather(
            component.body["jobs"],
            _Within(f"{within.prefix}.", within.place, component.folder, inputs, compute, within.depth + 1),
        )

    def _inherit(self, step: JsonObject, component: _Component, target: str, kind: str) -> None:
        """Copy values from the component that the step does not have; if the component is unknown, so are they."""
        for key in _INHERITED:
            if step.get(key) is None and component.body.get(key) is not None:
                step[key] = component.body[key]
        if not component.why or is_pinned(step.get("component")):
            return
        missing = [key for key in _INHERITED if step.get(key) is None]
        if not kind:
            missing.append("type")
        if kind in ("", "pipeline") and step.get("compute") is None:
            missing.append("computeId")
        self.unreadable |= {f"{target}/{key}": component.why for key in missing}

    def _trial(self, step: JsonObject, trial: object, target: str, folder: str) -> None:
        """Read the nodes of a sweep's trial from its component."""
        own = trial if isinstance(trial, dict) else {}
        reference = own.get("component", trial)
        component = self.component(reference, folder)
        inherited = {key: own.get(key) or component.body.get(key) for key in _INHERITED}
        stated = {key: value for key, value in inherited.items() if value is not None}
        step["trial"] = {**stated, "component": reference}
        if component.why and not is_pinned(reference):
            self.unreadable |= {f"{target}/trial/{key}": component.why for key in _INHERITED if key not in stated}

    def component(self, reference: object, folder: str) -> _Component:
        """Return a component that is inline, in a file, or registered; the definition of the last is unknown."""
        if isinstance(reference, dict):
            return _Component(reference, folder)
        path = file_of(reference)
        if is_open(reference):
            return _Component(
                {}, why=f"`component` is the placeholder {format_value(reference)}; replace it with a value"
            )
        if not path:
            why = f"the component {format_value(reference)} is registered, and its definition is not in the file"
            return _Component({}, why=why)
        found = PurePosixPath(folder) / path
        if str(found) not in self.files:
            self.files[str(found)] = self._read(str(found))
        body = self.files[str(found)]
        if isinstance(body, str):
            return _Component({}, why=body)
        if not isinstance(body, dict):
            return _Component({}, why=f"`{path}` is {kind_of(body)}, not a component")
        return _Component(body, str(found.parent))

    def _read(self, path: str) -> object:
        """Return the document at a path, or as text why it cannot be read."""
        if len(self.files) >= MAX_FILES:
            return f"the pipeline names more than {MAX_FILES} component files, the most that are read"
        try:
            document = self.around.beside(path)
        except InputError as error:
            return f"the component `{path}` cannot be read: {error.message}"
        return document if not isinstance(document, str) else f"`{path}` is text, not a component"


def is_pinned(reference: object) -> bool:
    """Check whether a reference is one version of a registered component; ARM has only the reference, too."""
    return isinstance(reference, str) and not file_of(reference) and not is_label(reference) and not is_open(reference)


def _kind(step: JsonObject, component: _Component) -> str:
    """Return the type of a step, from itself or its component, by default `command`; empty if it is unknown."""
    for stated in (step.get("type"), component.body.get("type")):
        if isinstance(stated, str) and not is_open(stated):
            return lowered(stated).removesuffix("_component")
    if step.get("type") is not None:
        return ""
    return "" if component.why and not is_pinned(step.get("component")) else "command"


def _bind_inputs(step: JsonObject, inputs: Mapping[str, object]) -> JsonObject:
    """Return a copy of a step with the pipeline's input values in the keys that policies check."""
    return {key: _filled(value, inputs) if key in _BOUND else value for key, value in step.items()}


def _filled(value: object, inputs: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _resolve_binding(entry, inputs) for key, entry in value.items()}
    return _resolve_binding(value, inputs)


def _resolve_binding(value: object, inputs: Mapping[str, object]) -> object:
    named = _BINDING.fullmatch(value.strip()) if isinstance(value, str) else None
    return inputs.get(named[1], value) if named else value


def _values(inputs: object) -> dict[str, object]:
    """Return the inputs that have a plain value or default."""
    return dict(_plain(inputs))


def _bind_values(inputs: object, outer: Mapping[str, object]) -> dict[str, object]:
    return {key: _resolve_binding(value, outer) for key, value in _plain(inputs)}


def _plain(inputs: object) -> Iterator[tuple[str, object]]:
    for key, value in inputs.items() if isinstance(inputs, dict) else ():
        plain = value.get("default", value.get("value")) if isinstance(value, dict) else value
        if isinstance(plain, (str, int, float)):
            yield key, plain
