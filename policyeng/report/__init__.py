"""An evaluation rendered for a reader or a machine: one module per format, each a pure `render(evaluation) -> str`.

`FORMATS` names them all. A format's module, and what it needs, is imported when it first renders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from policyeng.models import Evaluation

Render = Callable[..., str]


def _lazy(module: str) -> Render:
    def render(evaluation: Evaluation, **options: object) -> str:
        rendered: str = import_module(module, __name__).render(evaluation, **options)
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
    }
)
#: The formats that people read: they take `group_by`, one of `GROUPS` or None.
PROSE = ("text", "markdown")
#: The formats that name the profile whose parameters were judged with: they take `profile`, its name or None.
PROFILED = (*PROSE, "sarif", "junit")
GROUPS = ("resource", "policy")
