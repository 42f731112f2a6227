"""Reports of an evaluation: one module per format, each with a pure function of an evaluation.

`FORMATS` lists them all. The module of a format and its dependencies are imported on first use. A format whose reports
are long has a function that yields the report in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from policyeng.models import Evaluation

Render = Callable[..., str]
WriteParts = Callable[..., Iterator[str]]


def _lazy(module: str, function: str = "render") -> Render:
    def render(evaluation: Evaluation, **options: object) -> str:
        rendered: str = getattr(import_module(module, __name__), function)(evaluation, **options)
        return rendered

    return render


def _lazy_parts(module: str, function: str = "write_parts") -> WriteParts:
    def write_parts(evaluation: Evaluation, **options: object) -> Iterator[str]:
        yield from getattr(import_module(module, __name__), function)(evaluation, **options)

    return write_parts


#: The formats whose reports are written in parts, so that no report of a large snapshot is in memory as a whole.
_IN_PARTS: Mapping[str, WriteParts] = {
    "json": _lazy_parts(".json"),
    "csv": _lazy_parts(".csv"),
    "csv-bom": _lazy_parts(".csv", "write_marked_parts"),
}


def write_parts(format_: str, evaluation: Evaluation, **options: object) -> Iterator[str]:
    """Yield a report in a format of `FORMATS` in parts; the options are those of the format."""
    if format_ in _IN_PARTS:
        yield from _IN_PARTS[format_](evaluation, **options)
    else:
        yield FORMATS[format_](evaluation, **options)


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
