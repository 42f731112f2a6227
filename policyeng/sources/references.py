"""What documents state about each other: names, workspaces, links, and what replaces source code or a state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from msgspec.structs import replace

from policyeng.later import lazy_pattern
from policyeng.models import WORKSPACE_TYPE, JsonObject, LedgerEntry, Problem, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.sources import workspace_config
from policyeng.sources.context import Home, directory_of, resolve_path
from policyeng.sources.detection import DetectedDocument, OpenedFile
from policyeng.sources.discovery import Named
from policyeng.sources.parsed import Find, Loaded, NamedThing, ParsedDocument, find_nothing, problem_of
from policyeng.sources.relevance import mentions_machine_learning

_EVERYWHERE = ""


class _ThingIndex:
    """An index of the things that the documents of one format name."""

    def __init__(self) -> None:
        self._found: dict[tuple[Hashable, str | PurePath], list[NamedThing]] = defaultdict(list)

    def add(self, names: Mapping[Hashable, JsonObject], named: Named) -> Find:
        """Add what a document names, by key.

        Returns:
            a function that finds things for the document: first those of its file, then those of its directory or the
            nearest one above it that has any, then those of all inputs.
        """
        file, directory = f"file {named.file}", directory_of(named)

        def find(key: Hashable) -> Sequence[NamedThing]:
            places: tuple[str | PurePath, ...] = (file, directory, *directory.parents, _EVERYWHERE)
            return next((found for place in places if (found := self._found.get((key, place)))), [])

        for key, thing in names.items():
            found = NamedThing(thing, names, find)
            for place in (file, directory, _EVERYWHERE):
                self._found[(key, place)].append(found)
        return find


def make_finders(parts: Iterable[DetectedDocument]) -> list[Find]:
    """Return, for each document, the function that finds the things that all documents of its format name."""
    indexes: dict[str, _ThingIndex] = defaultdict(_ThingIndex)
    return [
        indexes[part.name].add(names_in(part.document), part.named)
        if (names_in := getattr(part.format, "names_in", None))
        else find_nothing
        for part in parts
    ]


def find_homes(part: DetectedDocument, reading: ParsedDocument) -> Iterator[Home]:
    """Yield the workspaces that a document names, with the directory that each applies to."""
    directory = directory_of(part.named)
    if part.format is workspace_config and (named := workspace_config.workspace_of(part.document)):
        yield Home(directory.parent if directory.name == ".azureml" else directory, named)
    for placed in reading.resources:
        if lowered(placed.resource["type"]) == WORKSPACE_TYPE:
            yield Home(directory, placed.resource["id"])


def find_linked(parts: Sequence[DetectedDocument], done: Mapping[int, Loaded]) -> dict[int, Loaded]:
    """Return the documents that are read as part of another one, without content and with that as the reason.

    A document that is read as part of another does not remove others. Of files that link to each other, the first by
    name remains.
    """
    left: dict[int, Loaded] = {}
    links = _find_links(parts, done)
    waiting = set(done)
    while waiting:
        linked = {other for index in waiting for other in links.get(index, ())}
        free = waiting - linked or {
            min(waiting, key=lambda index: (not _links_back(index, links), parts[index].named.file))
        }
        for index in sorted(free, key=lambda index: parts[index].named.file):
            for other in links.get(index, frozenset()) & waiting - free:
                reason = f"read as part of `{parts[index].named.file}`"
                left.setdefault(other, done[other]._replace(reading=ParsedDocument(nothing=reason)))
        waiting -= free | left.keys()
    return left


def _find_links(parts: Sequence[DetectedDocument], done: Mapping[int, Loaded]) -> dict[int, frozenset[int]]:
    """Return, by position, which documents are read as part of which."""
    if not any(document.reading.linked for document in done.values()):
        return {}
    files = {index: path for index in done if (path := parts[index].named.path)}
    by_file: dict[PurePath, set[int]] = {}
    for index, path in files.items():
        by_file.setdefault(resolve_path(path), set()).add(index)
    found: dict[int, frozenset[int]] = {}
    for index, path in files.items():
        wholes = [resolve_path(path.parent / linked) for linked in done[index].reading.linked]
        others = frozenset(other for linked in wholes for other in by_file.get(linked, ()))
        if wholes:
            found[index] = frozenset(other for other in others - {index} if parts[other].format is parts[index].format)
    return found


def _links_back(index: int, links: Mapping[int, frozenset[int]]) -> bool:
    """Check whether a document links to one that links back to it."""
    return any(index in links.get(other, ()) for other in links.get(index, ()))


def with_overlays(parts: Sequence[DetectedDocument], documents: Sequence[Loaded]) -> list[Loaded]:
    """Return the documents; a Kustomization that changes objects of Azure is incomplete, because it is not rendered."""
    if all(part.name != "kubernetes" for part in parts):
        return list(documents)
    from policyeng.sources.kubernetes import kustomization  # few inputs have manifests

    files = [
        resolve_path(path)
        for part, document in zip(parts, documents, strict=True)
        if part.name == "kubernetes"
        and (path := part.named.path)
        and (document.reading.resources or document.reading.refusals)
    ]
    marked = list(documents)
    for index, (part, document) in enumerate(zip(parts, documents, strict=True)):
        overlay = part.document
        if part.name != "kubernetes" or not kustomization.is_kustomization(overlay) or not isinstance(overlay, dict):
            continue
        sources = [resolve_path(Path(directory_of(part.named)) / path) for path in kustomization.list_named(overlay)]
        is_over_ours = any(file.is_relative_to(source) for file in files for source in sources)
        if kustomization.changes_objects(overlay) and (is_over_ours or kustomization.finds_checked_kind(overlay)):
            line = f"{document.file}: {kustomization.describe(overlay, PurePath(document.file).parent)}"
            incomplete = (*document.reading.incomplete, line)
            marked[index] = document._replace(reading=replace(document.reading, incomplete=incomplete))
    return marked


#: `module name 'path'` of a Bicep file, and `using 'path'` of its parameters; a path in a registry has a colon.
_CALLED = lazy_pattern(rb"^[ \t]*+(?:module[ \t]+\w+|using)[ \t]+'([^':\r\n]+)'", re.MULTILINE)
_COMMENT = lazy_pattern(rb"/\*(?:.*?\*/|.*+)", re.DOTALL)
#: The program that wrote a template.
_GENERATOR = "/metadata/_generator/name"
_PRIOR = "/prior_state/values"
_CALLS = "/configuration/root_module/module_calls"
_BICEP = (".bicep", ".bicepparam")


def list_uncompiled(
    files: Sequence[OpenedFile], read: Iterable[DetectedDocument]
) -> Iterator[tuple[int, Problem | LedgerEntry]]:
    """Report source code for Azure Machine Learning as an error, unless an input was generated from it.

    A Bicep file and the modules that it calls are compiled to the template of the same name in the same directory.
    Terraform plans the files of one directory and the local modules that the configuration of the plan calls. Templates
    that Bicep did not write do not count. Whether a template is up to date cannot be checked: its `templateHash` is
    a hash of the template, not of the Bicep file.

    Args:
        files: all inputs.
        read: the documents with resources.

    Yields:
        The position of each, and the problem or what was not read.
    """
    codes = [(at, file.named, *file.source_code) for at, file in enumerate(files) if file.named and file.source_code]
    generated = _find_generated_inputs({named.path: content for _, named, content, _ in codes if named.path}, read)
    for position, named, content, error in codes:
        if named.path in generated:
            reason = f"`{generated[named.path]}` is read instead; it is assumed to be up to date"
            yield position, LedgerEntry(place=named.file, reason=reason, relevant=False)
        elif mentions_machine_learning(content):
            yield position, problem_of(error)
        else:
            yield position, LedgerEntry(place=named.file, reason=error.message, relevant=False)


def _find_generated_inputs(sources: Mapping[Path, bytes], read: Iterable[DetectedDocument]) -> dict[Path, str]:
    """Return the input that was generated from each source code file, for the files that have one."""
    generated: dict[Path, str] = {}
    bicep = {path.resolve(): path for path in sources if path.suffix.lower() in _BICEP}
    configuration = {path: path.parent.resolve() for path in sources if path not in bicep.values()}
    for part in read if sources else ():
        found: Iterable[Path] = ()
        path = part.named.path
        if path and part.name == "arm-template" and value_at(part.document, _GENERATOR) == "bicep":
            found = _find_compiled_files([path.resolve().with_suffix(suffix) for suffix in _BICEP], bicep, sources)
        elif path and _is_plan(part):
            folders = _find_planned_directories(path.parent.resolve(), part.document)
            found = [each for each, folder in configuration.items() if folder in folders]
        generated = {**dict.fromkeys(found, part.named.file), **generated}
    return generated


def _find_compiled_files(roots: Iterable[Path], bicep: Mapping[Path, Path], sources: Mapping[Path, bytes]) -> set[Path]:
    """Return the Bicep files, given by their absolute paths, that are compiled together with the roots."""
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


def _find_planned_directories(home: Path, plan: object) -> set[Path]:
    """Return the directories that a plan covers: its own and those of the local modules that it calls."""
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


def drop_superseded(parts: Sequence[DetectedDocument]) -> tuple[list[DetectedDocument], list[LedgerEntry]]:
    """Drop the Terraform states in directories that a plan in the same directory replaces."""
    plans: dict[PurePath, DetectedDocument] = {}
    for part in parts:
        if _is_plan(part) and value_at(part.document, _PRIOR) is not None:
            plans.setdefault(directory_of(part.named), part)
    kept: list[DetectedDocument] = []
    superseded: list[LedgerEntry] = []
    for part in parts:
        is_state = part.name == "terraform" and part.named.found and not _is_plan(part)
        if is_state and (plan := plans.get(directory_of(part.named))):
            reason = f"a state; the plan `{plan.named.file}` in the same directory is read instead"
            # A plan of another state can be put next to any state.
            is_other = not _list_ids(part.document) <= _list_ids(value_at(plan.document, _PRIOR))
            reason += ", which does not have all of its resources" if is_other else ""
            superseded.append(LedgerEntry(place=part.named.file, reason=reason, relevant=is_other))
        else:
            kept.append(part)
    return kept, superseded


def _list_ids(document: object) -> set[str]:
    """Return the ARM ids of the resources in a state, in lower case."""
    ids: set[str] = set()
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            arm_id = value.get("id")
            if isinstance(arm_id, str) and arm_id.startswith("/"):
                ids.add(lowered(arm_id))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return ids


def _is_plan(part: DetectedDocument) -> bool:
    return part.name == "terraform" and value_at(part.document, "/planned_values") is not None
