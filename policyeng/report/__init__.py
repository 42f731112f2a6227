"""Reports of an evaluation: one module per format, each with a pure `render(evaluation) -> str`.

`FORMATS` lists them all. The module of a format and its dependencies are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from policyeng.models import Evaluation

Render = Callable[..., str]


def _lazy(module: str, function: str = "render") -> Render:
    def render(evaluation: Evaluation, **options: object) -> str:
        rendered: str = getattr(import_module(module, __name__), function)(evaluation, **options)
        return rendered

    return render


#: The formats by their names in `--format` and `--output`. Rendering is deterministic; texts end with a newline.
FORMATS: Mapping[str, Render] = MappingProxyType(
    {
        "text": _lazy(".text"),
        "json": _lazy(".json"),
        "sarif": _lazy(".sarif"),
        "junit": _lazy(".junit"),
        "markdown": _lazy(".markdown"),
        "github": _lazy(".build_agents", "render_github"),
        "azure-devops": _lazy(".build_agents", "render_azure_devops"),
        "html": _lazy(".html"),
        "csv": _lazy(".csv"),
        "csv-bom": _lazy(".csv", "render_marked"),
        "oscal": _lazy(".oscal"),
    }
)
#: The formats for people: they accept `group_by`, one of `GROUPS` or None.
PROSE = ("text", "markdown", "html")
#: The formats that name the parameter profile of the evaluation: they accept `profile`, its name or None.
PROFILED = (*PROSE, "sarif", "junit")
#: The formats that add context to findings, such as owners: they accept `about`, a `ReportContext` or None.
INFORMED = ("html", "csv", "csv-bom")
GROUPS = ("resource", "policy", "owner", "control", "input")
