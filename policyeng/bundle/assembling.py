"""Assembly of a bundle from the modules, data documents and policies of its origins."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from policyeng.bundle.data_documents import absolute, join_document, join_given
from policyeng.bundle.discovery import policies_of
from policyeng.bundle.files import DATA_NAMES, BundleOrigin, is_gatekeepers, text_of
from policyeng.bundle.framework_mappings import separate_frameworks
from policyeng.bundle.gatekeeper import (
    Constraint,
    ConstraintTemplate,
    constrained,
    constraints_of,
    kinds_of,
    refuse_undeclared,
    with_templates,
)
from policyeng.bundle.loader import Bundle, as_json
from policyeng.bundle.outlines import Outline, outlines_of
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError
from policyeng.models import JsonObject
from policyeng.named import NamedTuple


def bundle_of(origins: Sequence[BundleOrigin], given: Sequence[str | Path] = ()) -> Bundle:
    """Return the bundle of what was opened, with the documents that `given` names.

    Raises:
        BundleError: a module, header or data document is not well formed, or an id or package is used twice.
    """
    read = _read_all(origins)
    for path in given:
        join_given(read.data, path)
    outlines = [
        outline
        for root, tree in read.trees.items()
        for outline in outlines_of(root, tree, {policy.file for policy in read.policies[root]})
    ]
    headed = [policy for policies in read.policies.values() for policy in policies]
    kinds = kinds_of(read.templates, outlines)
    refuse_undeclared(read.constraints, kinds)
    foreign = _add_foreign_policies(outlines, read.data, headed, kinds) if outlines else []
    policies = [*headed, *(entry for policy in foreign for entry in constrained(policy, read.constraints, kinds))]
    own = [origin for origin in origins if not origin.lent]
    rego_v0 = _in_v0(outlines)
    digest = _digest(read.modules, read.others, as_json(read.data), rego_v0)
    framework_text = separate_frameworks(read.data, read.modules)
    return Bundle(
        name=", ".join(origin.name for origin in own),
        revision=", ".join(filter(None, (origin.manifest.revision for origin in own))),
        digest=digest,
        policies=_unique(policies),
        modules=_deduplicate(read.modules),
        data=read.data,
        roots=tuple(origin.root for origin in origins),
        rego_v0=rego_v0,
        lent=frozenset(path.parts[0] for origin in origins if origin.lent for path in origin.tree),
        given=tuple(map(absolute, given)),
        origins=tuple(origins),
        framework_text=framework_text,
    )


def _add_foreign_policies(
    outlines: Sequence[Outline], data: JsonObject, headed: Iterable[Policy], reviewing: Collection[str]
) -> list[Policy]:
    from policyeng.bundle.conftest import find_foreign_policies  # most bundles hold none

    return find_foreign_policies(outlines, data, {policy.package for policy in headed}, reviewing)


def _in_v0(outlines: Iterable[Outline]) -> frozenset[str]:
    versions: dict[str, bool] = {}
    for outline in outlines:
        if versions.setdefault(str(outline.path), outline.rego_v0) != outline.rego_v0:
            message = f"`{outline.path}` is in two directories, once in Rego v0 and once in v1"
            raise BundleError(message, place=(outline.place,), remedy="rename one of them")
    return frozenset(path for path, v0 in versions.items() if v0)


def _deduplicate(modules: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return modules by path, without modules of equal text, such as copies of Gatekeeper's libraries."""
    first: dict[str, str] = {}
    for path, source in sorted(modules):
        first.setdefault(source, path)
    return tuple((path, source) for source, path in first.items())


class _Read(NamedTuple):
    """What all origins hold, by root where that matters; `others` are Python policies and Gatekeeper's files."""

    trees: dict[Path, Mapping[PurePosixPath, bytes]]
    modules: list[tuple[str, str]]
    others: dict[PurePosixPath, bytes]
    data: JsonObject
    policies: dict[Path, list[Policy]]
    templates: list[ConstraintTemplate]
    constraints: list[Constraint]


def _read_all(origins: Sequence[BundleOrigin]) -> _Read:
    read = _Read({}, [], {}, {}, {}, [], [])
    for origin in origins:
        tree, templates = with_templates(origin.root, origin.tree)
        for path, content in sorted(tree.items()):
            if path.name in DATA_NAMES:
                join_document(read.data, path, content, origin.root)
            elif path.suffix == ".rego":
                read.modules.append((str(path), text_of(content, origin.root / path)))
            elif path.suffix == ".py" or is_gatekeepers(path, content):
                read.others[path] = content
        if not origin.lent:
            read.trees[origin.root] = tree
        read.policies.setdefault(origin.root, []).extend(policies_of(origin.root, tree))
        read.templates.extend(templates)
        read.constraints.extend(constraints_of(origin.root, tree))
    return read


def _digest(
    modules: Iterable[tuple[str, str]], others: Mapping[PurePosixPath, bytes], data: bytes, rego_v0: Iterable[str]
) -> str:
    """Return the digest of the content, regardless of the files: an archive that joins documents is the same bundle."""
    parts = {(path, source.encode()) for path, source in modules}
    parts |= {(str(path), content) for path, content in others.items()}
    digest = hashlib.sha256()
    versions = [("v0", path.encode()) for path in sorted(rego_v0)]
    for path, content in (*sorted(parts), ("data", data), *versions):
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _unique(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    seen: dict[str, Policy] = {}
    packages: dict[str, Policy] = {}
    for policy in policies:
        if policy.id in seen:
            places = f"`{seen[policy.id].file}` and `{policy.file}`"
            raise BundleError(f"duplicate policy id `{policy.id}` in {places}", remedy="give one of them another id")
        seen[policy.id] = policy
        own = policy.rules if policy.input_form == "policy" else ()  # foreign rules are read by package
        for package in {rule.rpartition(".")[0] for _, rule in own}:
            if package in packages:  # each would report the denials of both
                places = f"`{packages[package].file}` and `{policy.file}`"
                what = f"two policies share the package `{package.removeprefix('data.')}`, in {places}"
                raise BundleError(what, remedy="give one of them a package of its own")
            packages[package] = policy
    return tuple(sorted(seen.values(), key=lambda policy: policy.id))
