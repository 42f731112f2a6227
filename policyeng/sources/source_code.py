"""Source code that is compiled or planned before it can be judged, and whether what came of it is among the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policyeng.sources.loading import Part
from policyeng.sources.opening import Named
from policyeng.sources.surroundings import directory_of
from policyeng.strict.json_pointer import value_at

#: By suffix, the format of what comes of it.
_MADE: Mapping[str, str] = {".bicep": "arm-template", ".bicepparam": "arm-template", ".tf": "terraform"}


def made_of(source: Named, parts: Iterable[Part]) -> str:
    """The input that was made of a file of source code: in its directory or in one above; empty where there is none.

    A template counts when it has the file's name, or when Bicep says in it that it compiled it: a module is compiled
    into the template that calls it.
    """
    if source.path is None:
        return ""
    home = directory_of(source)
    for part in parts:
        above = part.named.path is not None and home.is_relative_to(directory_of(part.named))
        if above and part.name == _MADE[source.path.suffix.lower()] and _is_of(part, source):
            return part.named.file
    return ""


def _is_of(part: Part, source: Named) -> bool:
    if part.name == "terraform":
        return True
    same = part.named.path is not None and source.path is not None and part.named.path.stem == source.path.stem
    return same or value_at(part.document, "/metadata/_generator/name") == "bicep"
