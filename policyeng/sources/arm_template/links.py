"""Where the file may lie that a deployment links to: `relativePath`, or the end of a `uri` whose base is not known.

Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/linked-templates.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.sources.arm_template.resolving import Resolver
from policyeng.sources.arm_template.values import text_of
from policyeng.sources.arm_template.walking import Level, Walk
from policyeng.sources.texts import Text

#: Folders above a file that are looked for in a URI.
MAX_FOLDERS = 8

_STAND_IN = re.compile(r"\{[^{}]*\}")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)
_NAME_OF_FILE = re.compile(r"[\w. -]+\.jsonc?", re.IGNORECASE)
_FOLDER = re.compile(r"[\w. -]+")


class Link(NamedTuple):
    """A linked file: how a message calls it, and where it may lie relative to the document, most likely first."""

    called: str
    paths: tuple[str, ...]


def link_of(link: object, walk: Walk, level: Level) -> Link:
    """Where a `templateLink` or `parametersLink` may lead to; no paths where it names no file."""
    if not isinstance(link, dict):
        return Link("", ())
    folder = f"{level.linked}/" if level.linked else ""
    paths: list[str] = []
    relative = text_of(Resolver(level.scope).value(link.get("relativePath", "")))
    if relative and not relative.startswith("/") and "{" not in relative:
        paths.append(folder + relative)
    segments, called = _segments(text_of(Resolver(level.scope).value(link.get("uri", ""))))
    own = PurePath(level.text.file if level.text else walk.around.file).name
    for start in range(len(segments)):
        path = "/".join(segments[start:])
        if not (start and path == own):  # another file of the same name
            paths += dict.fromkeys((folder + path, path))
    return Link(paths[0] if relative and paths else called, tuple(paths))


def beside(walk: Walk, path: str) -> Text | None:
    """A file beside the document; None where there is none that can be read."""
    if path not in walk.files:
        try:
            walk.files[path] = walk.around.text_beside(path)
        except InputError:
            walk.files[path] = None
    return walk.files[path]


def _segments(uri: str) -> tuple[list[str], str]:
    """The folders and the file that a URI ends in, and how a message calls them: without what is not known before."""
    host = _HOST.match(uri)
    pieces = _STAND_IN.split(uri[host.end() :] if host else uri)
    for index in reversed(range(len(pieces))):
        path = re.split(r"[?#]", pieces[index], maxsplit=1)[0]
        if _NAME_OF_FILE.fullmatch(path.rpartition("/")[2]):
            segments = [segment for segment in path.split("/") if segment not in ("", ".")]
            whole = host is not None and not index  # then nobody says which folders lie above the template
            known = _file_and_folders(segments, may_rise=not whole)
            return known, "/".join(known[-2:] if whole else known)
    return [], ""


def _file_and_folders(segments: list[str], *, may_rise: bool) -> list[str]:
    first = len(segments) - 1
    while first and len(segments) - first <= MAX_FOLDERS and _FOLDER.fullmatch(segments[first - 1]):
        if segments[first - 1] == ".." and not may_rise:
            break
        first -= 1
    return segments[first:]
