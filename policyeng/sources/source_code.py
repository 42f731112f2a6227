"""Source code that is compiled or planned before it can be judged, and whether what came of it is among the inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from policyeng.sources.loading import Part
from policyeng.sources.surroundings import directory_of
from policyeng.strict.json_pointer import value_at

#: `module name 'path'` of a Bicep file, and `using 'path'` of its parameters; what is in a registry has a colon.
_CALLED = re.compile(rb"^\s*(?:module\s+\w+|using)\s+'([^':\r\n]+)'", re.MULTILINE)
_CALLS = "/configuration/root_module/module_calls"
_BICEP = (".bicep", ".bicepparam")


def made_of(sources: Mapping[Path, bytes], read: Iterable[Part]) -> dict[Path, str]:
    """The input that was made of each file of source code; those of which none was are left out.

    A Bicep file is compiled to the template of its name beside it, with the modules that it calls; Terraform plans the
    files of one directory, with the local modules that the plan's configuration calls.

    Args:
        sources: the content of each file of source code, by its path.
        read: the documents in which something was found to judge.
    """
    made: dict[Path, str] = {}
    for part in read:
        if part.named.path is None:
            continue
        if part.name == "arm-template":
            wanted = {part.named.path.with_suffix(suffix) for suffix in _BICEP}
            found = _compiled([path for path in sources if path in wanted], sources)
        else:
            folders = _planned(part) if part.name == "terraform" else set()
            found = {path for path in sources if path.suffix not in _BICEP and path.parent.resolve() in folders}
        made = {**dict.fromkeys(found, part.named.file), **made}
    return made


def _compiled(roots: list[Path], sources: Mapping[Path, bytes]) -> set[Path]:
    """The Bicep files that were compiled together with some of them."""
    by_place = {path.resolve(): path for path in sources}
    found: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = (name.decode("utf-8", "replace") for name in _CALLED.findall(sources[path]))
            called = ((path.parent / name).resolve() for name in names)
            waiting += [by_place[place] for place in called if place in by_place]
    return found


def _planned(part: Part) -> set[Path]:
    """The directories that a plan is of: its own, and those of the local modules that it calls."""
    found: set[Path] = set()
    home = part.named.path.parent.resolve() if part.named.path else Path.cwd()
    waiting: list[tuple[Path, object]] = [(home, value_at(part.document, _CALLS))]
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
    if part.name != "terraform" or not part.named.found or value_at(part.document, "/planned_values") is not None:
        return ""
    home = directory_of(part.named)
    plans = (each for each in parts if each.name == "terraform" and directory_of(each.named) == home)
    return next((each.named.file for each in plans if value_at(each.document, "/planned_values") is not None), "")
