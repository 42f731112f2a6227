"""An evaluation rendered for a reader or a machine: one module per format, each a pure `render(evaluation) -> str`.

`FORMATS` names them all. A format's module, and what it needs, is imported when it first renders.
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


#: Every format by the name that `--format` and `--output` take. Same evaluation, same text; each ends with a newline.
FORMATS: Mapping[str, Render] = MappingProxyType(
    {
        "text": _lazy(".text"),
        "json": _lazy(".json"),
        "sarif": _lazy(".sarif"),
        "junit": _lazy(".junit"),
        "markdown": _lazy(".markdown"),
        "github": _lazy(".github"),
        "azure-devops": _lazy(".azure_devops"),
        "html": _lazy(".html"),
        "csv": _lazy(".csv"),
        "csv-bom": _lazy(".csv", "render_marked"),
    }
)
#: The formats that people read: they take `group_by`, one of `GROUPS` or None.
PROSE = ("text", "markdown", "html")
#: The formats that name the profile whose parameters were judged with: they take `profile`, its name or None.
PROFILED = (*PROSE, "sarif", "junit")
#: The formats that say what stands beside the findings, such as owners: they take `about`, an `About` or None.
INFORMED = ("html", "csv", "csv-bom")
GROUPS = ("resource", "policy")
