"""Definitions of Azure Policy as policies of a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng.azure_policy.aliases import AliasTable, aliases_in, built_in_aliases
from policyeng.azure_policy.assignments import EffectivePolicy, PolicyNote, resolve
from policyeng.azure_policy.definitions import PolicyDocuments, may_have_policies, read_documents
from policyeng.azure_policy.effects import EVALUATED_MODES, CompiledPolicy
from policyeng.bundle.external_policies import ForeignHeader
from policyeng.bundle.files import BundleOrigin
from policyeng.bundle.header import ANY_TYPE, Patch, Remediation, TargetType
from policyeng.bundle.manifest import Manifest
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError
from policyeng.models import JsonObject, Severity, lowered
from policyeng.parsing.json_text import shortened

#: The area of the policies, by which they can be selected.
AREA = "azure-policy"
#: More names than this are not listed in a message.
_MOST_NAMES = 8


class AzurePolicies(NamedTuple):
    """The policies of origins, and notes about what is not evaluated."""

    policies: list[Policy]
    notes: tuple[PolicyNote, ...]


class ResolvedOrigins(NamedTuple):
    """What is in origins: the policies as they apply, notes, and the aliases."""

    policies: Sequence[EffectivePolicy]
    notes: Sequence[PolicyNote]
    aliases: AliasTable


def open_azure_policies(paths: Iterable[Path]) -> Iterator[BundleOrigin]:
    """Yield an origin for each file or directory.

    Raises:
        BundleError: a file cannot be read, or there is no file that may have policies.
    """
    for path in paths:
        try:
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            tree = {
                PurePosixPath(file.relative_to(path).as_posix() if path.is_dir() else path.name): file.read_bytes()
                for file in files
                if (may_have_policies(PurePosixPath(file.name)) or not path.is_dir()) and file.is_file()
            }
        except OSError as error:
            message = f"the Azure policies cannot be read ({(error.strerror or '').lower()})"
            raise BundleError(message, place=(str(path),)) from error
        if not tree:
            remedy = "name a file or a directory with definitions, initiatives or assignments in JSON"
            raise BundleError("there is no JSON file", place=(str(path),), remedy=remedy)
        root = path if path.is_dir() else path.parent
        yield BundleOrigin(path.name or str(path), root, tree, Manifest(), members=tuple(tree), azure_policy=True)


def resolve_origins(origins: Iterable[BundleOrigin]) -> ResolvedOrigins:
    """Read origins, join what they assign, and find the aliases.

    Raises:
        BundleError: a document is not well formed, or there is nothing to evaluate.
    """
    documents, aliases = PolicyDocuments(), built_in_aliases()
    place = ""
    for origin in origins:
        place = place or str(origin.root)
        for path, content in origin.tree.items():
            if b'"resourceTypes"' in content and (table := aliases_in(content, str(origin.root / path))) is not None:
                aliases = aliases.updated(table)
        documents.extend(read_documents(origin.tree, origin.root))
    if documents.is_empty:
        remedy = "name files with `policyRule`, `policyDefinitions` or `policyDefinitionId`"
        raise BundleError("there is no definition, initiative or assignment", place=(place,), remedy=remedy)
    resolved = resolve(documents, aliases)
    return ResolvedOrigins(resolved.policies, resolved.notes, aliases)


def read_policies(origins: Sequence[BundleOrigin]) -> AzurePolicies:
    """Return the policies of origins.

    Raises:
        BundleError: as of `resolve_origins`.
    """
    resolved = resolve_origins(origins)
    notes = list(resolved.notes)
    policies: list[Policy] = []
    refused: list[EffectivePolicy] = []
    disabled: list[EffectivePolicy] = []
    for effective in resolved.policies:
        if lowered(effective.definition.mode) not in EVALUATED_MODES:
            refused.append(effective)
            continue
        compiled = CompiledPolicy(effective, resolved.aliases)
        policies.append(_policy_of(effective, compiled))
        if lowered(compiled.static_effect) == "disabled":
            disabled.append(effective)
    notes += _summarize(refused, "configure the service and publish no condition, so they are not evaluated")
    notes += _summarize(disabled, "are disabled by their parameters, so they have no findings")
    return AzurePolicies(policies, tuple(notes))


def _summarize(policies: Sequence[EffectivePolicy], what: str) -> Iterator[PolicyNote]:
    if policies:
        names = [f"{policy.id} ({shortened(policy.definition.title)})" for policy in policies[:_MOST_NAMES]]
        names += [f"{len(policies) - _MOST_NAMES} more"] if len(policies) > _MOST_NAMES else []
        message = f"{len(policies)} Azure policies {what}: {', '.join(names)}"
        yield PolicyNote(is_error=False, message=message, place=policies[0].definition.place)


def _policy_of(effective: EffectivePolicy, compiled: CompiledPolicy) -> Policy:
    definition = effective.definition
    fields: JsonObject = {
        "id": effective.id,
        "title": shortened(definition.title or effective.id, 149),
        "description": definition.description,
        "severity": _severity(effective, compiled.static_effect),
        "judges": tuple(TargetType(type=kind) for kind in sorted(compiled.judged_types or (ANY_TYPE,))),
        "controls": dict(effective.controls),
        "parameters": {name: {"default": value} for name, value in _parameters(effective)},
        "remediation": _remediation(compiled),
        "source": "Azure Policy",
    }
    return Policy(ForeignHeader(**fields), AREA, effective.id, definition.place, azure=compiled)


def _parameters(effective: EffectivePolicy) -> Iterator[tuple[str, object]]:
    """Yield the declared parameters with their values; null stands for no value."""
    values: Mapping[str, object] = effective.definition.defaults | dict(effective.values)
    for name in effective.definition.parameters:
        yield name, values.get(lowered(name))


def _severity(effective: EffectivePolicy, effect: str) -> Severity:
    stated = effective.definition.metadata.get("severity")
    if isinstance(stated, str) and stated.lower() in set(Severity):
        return Severity(stated.lower())
    return Severity.HIGH if lowered(effect) in ("deny", "denyaction") else Severity.MEDIUM


def _remediation(compiled: CompiledPolicy) -> Remediation | None:
    """Return what `modify` and `append` would do, as far as it is known without the resource."""
    steps = compiled.patch
    if not steps:
        return None
    changes = [f"remove `{step['path']}`" if "value" not in step else f"set `{step['path']}`" for step in steps]
    text = f"Do what Azure Policy does when it remediates: {', '.join(changes)}."
    return Remediation(text=text, patches=(Patch(patch=steps),))
