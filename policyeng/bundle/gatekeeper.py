"""Gatekeeper's templates: their Rego, and the constraints that set kinds and parameters for them.

Source: https://open-policy-agent.github.io/gatekeeper/website/docs/constrainttemplates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path, PurePosixPath

from policyeng.bundle.document_parsing import bundle_manifests
from policyeng.bundle.files import TEST_FOLDERS, is_gatekeepers, text_of
from policyeng.bundle.header import TargetType
from policyeng.bundle.outlines import Outline
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError
from policyeng.frozen import replace
from policyeng.models import JsonObject, Severity
from policyeng.named import NamedTuple


class ConstraintTemplate(NamedTuple):
    """A template: the `kind` of its constraints, empty where it states none, and the place of its module."""

    kind: str
    module: str
    place: str


class Constraint(NamedTuple):
    """A constraint of a `kind`: `warns` if its enforcement never denies; empty `kinds` match every document."""

    kind: str
    name: str
    folder: PurePosixPath
    place: str
    kinds: tuple[str, ...]
    parameters: JsonObject
    warns: bool


def with_templates(
    root: Path, tree: Mapping[PurePosixPath, bytes]
) -> tuple[dict[PurePosixPath, bytes], list[ConstraintTemplate]]:
    """Return the files of a root and the Rego modules inside its constraint templates.

    A module that is also a file next to its template is read from that file.

    Raises:
        BundleError: a template has no Rego, or two templates have different libraries of one package.
    """
    whole = dict(tree)
    templates: list[ConstraintTemplate] = []
    libraries: dict[str, bytes] = {}
    present = {
        content.strip(): path
        for path, content in sorted(tree.items())
        if path.suffix == ".rego" and not _in_tests(path)
    }
    for path, template in _documents(root, tree):
        if template.get("kind") != "ConstraintTemplate":
            continue
        place = str(root / path)
        name = _find_free_name(path, whole)
        for number, source in enumerate(_sources(template, place)):
            content = source.encode()
            package = next((line for line in source.splitlines() if line.startswith("package ")), "")
            if number and libraries.setdefault(package, content) != content:
                message = f"another template has a different library as `{package}`; Gatekeeper isolates them"
                raise BundleError(message, place=(place,), remedy="use one template at a time")
            called = f"{name}.lib{number}.rego" if number else f"{name}.rego"
            module = present.setdefault(content.strip(), path.with_name(called))
            whole.setdefault(module, content)
            if not number:
                kind = _at(template, "spec", "crd", "spec", "names", "kind")
                templates.append(ConstraintTemplate(kind if isinstance(kind, str) else "", str(root / module), place))
    return whole, templates


def kinds_of(templates: Iterable[ConstraintTemplate], outlines: Iterable[Outline]) -> dict[str, set[str]]:
    """Return the kinds of constraints by the package of their template.

    Raises:
        BundleError: a template has no `violation`, the only rule that Gatekeeper evaluates.
    """
    at = {outline.place: outline for outline in outlines}
    kinds: dict[str, set[str]] = {}
    for template in templates:
        outline = at.get(template.module)
        if outline is None or not any(rule.name == "violation" for rule in outline.rules):
            remedy = "call the rule `violation`: Gatekeeper judges by no other"
            raise BundleError("the template has no rule `violation`", place=(template.place,), remedy=remedy)
        kinds.setdefault(outline.package, set()).add(template.kind)
    return kinds


def constraints_of(root: Path, tree: Mapping[PurePosixPath, bytes]) -> list[Constraint]:
    """Return the constraints of a root.

    Raises:
        BundleError: one of them is not well formed.
    """
    found = []
    for path, document in _documents(root, tree):
        if not str(document.get("apiVersion", "")).startswith("constraints.gatekeeper.sh/"):
            continue
        spec, metadata = document.get("spec") or {}, document.get("metadata") or {}
        try:
            kinds = tuple(
                kind for entry in (spec.get("match") or {}).get("kinds", []) for kind in entry.get("kinds", [])
            )
            parameters = dict(spec.get("parameters") or {})
            name = _text(metadata["name"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "give it `metadata.name`, and `spec.match.kinds` and `spec.parameters` as Gatekeeper takes them"
            raise BundleError("the constraint is not well formed", place=(str(root / path),), remedy=remedy) from error
        kind, place = str(document.get("kind", "")), str(root / path)
        warns = spec.get("enforcementAction", "deny") in ("warn", "dryrun")
        found.append(Constraint(kind, name, path.parent, place, () if "*" in kinds else kinds, parameters, warns))
    return found


def refuse_undeclared(constraints: Iterable[Constraint], kinds: Mapping[str, set[str]]) -> None:
    """Refuse a constraint without a template.

    Raises:
        BundleError: no template declares its kind.
    """
    declared = set().union(*kinds.values()) - {""}
    for constraint in constraints:
        if constraint.kind not in declared:
            message = (
                f"the constraint `{constraint.name}` is of the kind `{constraint.kind}`, which no template declares"
            )
            remedy = "give the template with this kind under `spec.crd.spec.names`, too, or leave the constraint out"
            raise BundleError(message, place=(constraint.place,), remedy=remedy)


def constrained(policy: Policy, constraints: Iterable[Constraint], kinds: Mapping[str, set[str]]) -> Iterator[Policy]:
    """Yield the policy of a template once for every constraint of its kind; as it is where there is none."""
    own = kinds.get(policy.package, set())
    of_kind = [entry for entry in constraints if entry.kind in own]
    names = Counter(entry.name for entry in of_kind)
    for entry in of_kind:
        called = entry.name if names[entry.name] == 1 else f"{entry.name}@{entry.folder.name}"
        update: dict[str, object] = {
            "id": f"{policy.id}.{called}",
            "parameters": {name: {"default": value} for name, value in entry.parameters.items()},
        }
        if entry.kinds:
            update["judges"] = (TargetType(type="document", where={"/kind": entry.kinds}),)
        if entry.warns:
            update["severity"] = Severity.INFO
        yield replace(policy, header=policy.header.model_copy(update=update), name=f"{policy.name}.{called}")
    if not of_kind:
        yield policy


def _documents(root: Path, tree: Mapping[PurePosixPath, bytes]) -> Iterator[tuple[PurePosixPath, JsonObject]]:
    """Yield the objects in the files that may be Gatekeeper's, those of a `List` one by one; tests hold no policies."""
    for path, content in sorted(tree.items()):
        if is_gatekeepers(path, content) and not _in_tests(path):
            pending = bundle_manifests(text_of(content, root / path), str(root / path))
            for document in pending:
                if isinstance(document, dict) and document.get("kind") == "List":
                    items = document.get("items")
                    pending += items if isinstance(items, list) else ()
                elif isinstance(document, dict):
                    yield path, document


def _in_tests(path: PurePosixPath) -> bool:
    return bool(TEST_FOLDERS & set(path.parts[:-1]))


def _find_free_name(path: PurePosixPath, taken: Mapping[PurePosixPath, bytes]) -> str:
    """Return the name for the module of the next template in a file: `all.yaml`, `all.yaml.2` ..."""
    names = (f"{path.name}.{number}" if number > 1 else path.name for number in count(1))
    return next(name for name in names if path.with_name(f"{name}.rego") not in taken)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _at(document: object, *names: str) -> object:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _sources(template: JsonObject, place: str) -> Iterator[str]:
    """Yield the module of a template, then its libraries."""
    held: list[object] = []
    targets = _at(template, "spec", "targets")
    for target in targets if isinstance(targets, list) else ():
        codes = _at(target, "code")
        rego = (code for code in (codes if isinstance(codes, list) else ()) if _at(code, "engine") == "Rego")
        held += [target, *(_at(code, "source") for code in rego)]
    sources = [source for source in held if isinstance(source, dict) and isinstance(source.get("rego"), str)]
    if len(sources) != 1:
        message = f"the template has {len(sources)} targets with Rego"
        raise BundleError(message, place=(place,), remedy="add exactly one target with `rego`; CEL is not supported")
    libraries = sources[0].get("libs") or []
    if not isinstance(libraries, list) or not all(isinstance(library, str) for library in libraries):
        raise BundleError(
            "`libs` of the template is not a list of modules", place=(place,), remedy="write modules as text"
        )
    yield sources[0]["rego"]
    yield from libraries
