"""Gatekeeper's templates: the Rego inside them, and the constraints beside them that give kinds and parameters.

Source: https://open-policy-agent.github.io/gatekeeper/website/docs/constrainttemplates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng.bundle.declaration import Policy
from policyeng.bundle.header import Judged
from policyeng.bundle.parsing import bundle_yaml
from policyeng.bundle.tree import CONSTRAINT_NAMES, TEMPLATE_NAMES, text_of
from policyeng.errors import BundleError
from policyeng.models import JsonObject, Severity


class Constraint(NamedTuple):
    """A constraint: `warns` when its enforcement denies nothing; no kinds stand for every document."""

    name: str
    folder: PurePosixPath
    kinds: tuple[str, ...]
    parameters: JsonObject
    warns: bool


def with_templates(root: Path, tree: Mapping[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """The files of a root and the modules inside its templates: `template.yaml.rego`, `template.yaml.lib1.rego` ...

    Raises:
        BundleError: a template holds no Rego, or two of them bring different libraries of one package.
    """
    whole = dict(tree)
    libraries: dict[str, bytes] = {}
    present = {content.strip() for path, content in tree.items() if path.suffix == ".rego"}
    for path, template in _documents(root, tree, TEMPLATE_NAMES):
        if template.get("kind") != "ConstraintTemplate":
            continue
        for number, source in enumerate(_sources(template, str(root / path))):
            content = source.encode()
            package = next((line for line in source.splitlines() if line.startswith("package ")), "")
            if number and libraries.setdefault(package, content) != content:
                message = f"another template brings another library as `{package}`; Gatekeeper keeps them apart"
                raise BundleError(message, place=(str(root / path),), remedy="judge with one of them at a time")
            name = f"{path.name}.lib{number}.rego" if number else f"{path.name}.rego"
            if content.strip() not in present:
                whole[path.with_name(name)] = content
    return whole


def constraints_of(root: Path, tree: Mapping[PurePosixPath, bytes]) -> list[Constraint]:
    """The constraints of a root.

    Raises:
        BundleError: one of them is not well formed.
    """
    found = []
    for path, document in _documents(root, tree, CONSTRAINT_NAMES):
        if not str(document.get("apiVersion", "")).startswith("constraints.gatekeeper.sh/"):
            continue
        spec, metadata = document.get("spec") or {}, document.get("metadata") or {}
        try:
            kinds = tuple(
                kind for entry in (spec.get("match") or {}).get("kinds", []) for kind in entry.get("kinds", [])
            )
            parameters = dict(spec.get("parameters") or {})
            name = str(metadata["name"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "give it `metadata.name`, and `spec.match.kinds` and `spec.parameters` as Gatekeeper takes them"
            raise BundleError("the constraint is not well formed", place=(str(root / path),), remedy=remedy) from error
        warns = spec.get("enforcementAction", "deny") in ("warn", "dryrun")
        found.append(Constraint(name, path.parent, () if "*" in kinds else kinds, parameters, warns))
    return found


def constrained(policy: Policy, constraints: Iterable[Constraint]) -> Iterator[Policy]:
    """The policy of a template once for every constraint beside or below it; as it is where there is none."""
    folder = PurePosixPath(policy.file).parent
    templated = policy.file.endswith(tuple(f"{name}.rego" for name in TEMPLATE_NAMES))
    beside = [entry for entry in constraints if templated and entry.folder.is_relative_to(folder)]
    names = Counter(entry.name for entry in beside)
    for entry in beside:
        called = entry.name if names[entry.name] == 1 else f"{entry.name}@{entry.folder.name}"
        update: dict[str, object] = {
            "id": f"{policy.id}.{called}",
            "parameters": {name: {"default": value} for name, value in entry.parameters.items()},
        }
        if entry.kinds:
            update["judges"] = (Judged(type="document", where={"/kind": entry.kinds}),)
        if entry.warns:
            update["severity"] = Severity.INFO
        yield replace(policy, header=policy.header.model_copy(update=update), name=f"{policy.name}.{called}")
    if not beside:
        yield policy


def _documents(
    root: Path, tree: Mapping[PurePosixPath, bytes], names: frozenset[str]
) -> Iterator[tuple[PurePosixPath, JsonObject]]:
    for path, content in sorted(tree.items()):
        if path.name in names:
            document = bundle_yaml(text_of(content, root / path), str(root / path))
            if isinstance(document, dict):
                yield path, document


def _sources(template: JsonObject, place: str) -> Iterator[str]:
    """The module of a template, then its libraries."""
    held: list[JsonObject] = []
    spec = template.get("spec")
    for target in spec.get("targets") or () if isinstance(spec, dict) else ():
        held += [
            target,
            *(code.get("source") or {} for code in target.get("code") or () if code.get("engine") == "Rego"),
        ]
    held = [source for source in held if isinstance(source.get("rego"), str)]
    if len(held) != 1:
        message = f"the template holds Rego {len(held)} times"
        raise BundleError(message, place=(place,), remedy="give one target with `rego`; CEL is not judged")
    yield held[0]["rego"]
    yield from held[0].get("libs") or ()
