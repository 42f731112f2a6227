"""Source code that is compiled or planned before it can be judged, and whether what came of it is among the inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from policyeng.sources.loading import Part
from policyeng.sources.surroundings import directory_of
from policyeng.strict.json_pointer import value_at

#: `module name 'path'` of a Bicep file, and `using 'path'` of its parameters; what is in a registry has a colon.
_CALLED = re.compile(rb"^[ \t]*+(?:module[ \t]+\w+|using)[ \t]+'([^':\r\n]+)'", re.MULTILINE)
_COMMENT = re.compile(rb"/\*(?:.*?\*/|.*+)", re.DOTALL)
#: The program that wrote a template.
_GENERATOR = "/metadata/_generator/name"
_CALLS = "/configuration/root_module/module_calls"
_BICEP = (".bicep", ".bicepparam")


def made_of(sources: Mapping[Path, bytes], read: Iterable[Part]) -> dict[Path, str]:
    """The input that was made of each file of source code; those of which none was are left out.

    A Bicep file is compiled to the template of its name beside it, with the modules that it calls; Terraform plans the
    files of one directory, with the local modules that the plan's configuration calls. A template that Bicep did not
    write is left out. Whether one was made from the present text cannot be checked: its `templateHash` is a hash of
    the template, not of the Bicep file.

    Args:
        sources: the content of each file of source code, by its path.
        read: the documents in which something was found to judge.
    """
    made: dict[Path, str] = {}
    bicep = {path.resolve(): path for path in sources if path.suffix.lower() in _BICEP}
    configuration = {path: path.parent.resolve() for path in sources if path not in bicep.values()}
    for part in read if sources else ():
        found: Iterable[Path] = ()
        if part.name == "arm-template" and part.named.path is not None and _is_bicep_output(part.document):
            compiled = part.named.path.resolve()
            found = _compiled([compiled.with_suffix(suffix) for suffix in _BICEP], bicep, sources)
        elif _is_plan(part) and part.named.path is not None:
            folders = _planned(part.named.path.parent.resolve(), part.document)
            found = [path for path, folder in configuration.items() if folder in folders]
        made = {**dict.fromkeys(found, part.named.file), **made}
    return made


def _is_bicep_output(template: object) -> bool:
    """Whether Bicep wrote a template, which it states in each."""
    return value_at(template, _GENERATOR) == "bicep"


def _compiled(roots: Iterable[Path], bicep: Mapping[Path, Path], sources: Mapping[Path, bytes]) -> set[Path]:
    """Those of the Bicep files, by their whole paths, that were compiled together with some of them."""
    found: set[Path] = set()
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        path = bicep.get(place)
        if path is not None and path not in found:
            found.add(path)
            called = _CALLED.findall(_COMMENT.sub(b"", sources[path]))
            waiting += [(place.parent / name.decode("utf-8", "replace")).resolve() for name in called]
    return found


def _planned(home: Path, plan: object) -> set[Path]:
    """The directories that a plan is of: its own, and those of the local modules that it calls."""
    found: set[Path] = set()
    waiting: list[tuple[Path, object]] = [(home, value_at(plan, _CALLS))]
    while waiting:
        folder, calls = waiting.pop()
        found.add(folder)
        for call in calls.values() if isinstance(calls, dict) else ():
            source = value_at(call, "/source")
            if isinstance(source, str) and source.startswith("."):
                waiting.append(((folder / source).resolve(), value_at(call, "/module/module_calls")))
    return found


def is_superseded(part: Part, parts: Iterable[Part]) -> str:
    """The plan beside a Terraform state, which goes before the state that it was made from; empty without one."""
    if part.name != "terraform" or not part.named.found or _is_plan(part):
        return ""
    home = directory_of(part.named)
    plans = (each for each in parts if _is_plan(each) and directory_of(each.named) == home)
    return next((each.named.file for each in plans if value_at(each.document, "/prior_state/values") is not None), "")


def _is_plan(part: Part) -> bool:
    return part.name == "terraform" and value_at(part.document, "/planned_values") is not None
