"""Kustomizations: they change objects of other files before these are applied, and only `kustomize` renders them.

Source: https://kubectl.docs.kubernetes.io/references/kustomize/kustomization.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered
from policyeng.sources.kubernetes.objects import EXTENSION_GROUP, KINDS, get_inner, group_of, words
from policyeng.sources.kubernetes.single_object import is_checked

GROUP = "kustomize.config.k8s.io"
_KINDS = ("Kustomization", "Component")
_LISTS = ("bases", "components", "resources")
_PATCHES = ("patches", "patchesJson6902", "patchesStrategicMerge")
#: What lists other files and changes nothing in them.
_UNCHANGED = frozenset({"apiVersion", "bases", "kind", "metadata", "resources"})
FIELDS = frozenset(
    {
        *("buildMetadata", "commonAnnotations", "commonLabels", "configMapGenerator", "configurations", "crds"),
        *(
            "generatorOptions",
            "generators",
            "helmCharts",
            "helmGlobals",
            "images",
            "labels",
            "namePrefix",
            "nameSuffix",
        ),
        *("namespace", "openapi", "replacements", "replicas", "secretGenerator", "sortOptions", "transformers"),
        *("validators", "vars"),
        *_LISTS,
        *_PATCHES,
        *_UNCHANGED,
    }
)


def is_kustomization(document: object) -> bool:
    """Check whether a document is a Kustomization, which need not state its kind."""
    if not isinstance(document, dict):
        return False
    if "kind" in document or "apiVersion" in document:
        return document.get("kind") in _KINDS and group_of(document.get("apiVersion", f"{GROUP}/")) == GROUP
    return document.keys() <= FIELDS and any(_texts(document.get(name)) for name in _LISTS)


def changes_objects(document: JsonObject) -> bool:
    """Check whether a Kustomization does more than list local files."""
    listed = [entry for name in ("bases", "resources") for entry in _texts(document.get(name))]
    return not document.keys() <= _UNCHANGED or any("://" in entry or "?ref=" in entry for entry in listed)


def list_named(document: JsonObject) -> Iterator[str]:
    """Yield the paths of files and folders that a Kustomization names."""
    for name in (*_LISTS, "patchesStrategicMerge"):
        yield from (entry for entry in _texts(document.get(name)) if "\n" not in entry and "\0" not in entry)


def finds_checked_kind(document: JsonObject) -> bool:
    """Check whether a patch of a Kustomization is of an object that is checked."""
    for name in _PATCHES:
        entries = document.get(name)
        for entry in entries if isinstance(entries, list) else ():
            target = get_inner(entry, "target")
            if _is_checked_target(words(get_inner(target, "group")), words(get_inner(target, "kind"))):
                return True
            if any(_is_checked_text(text) for text in (entry, get_inner(entry, "patch")) if isinstance(text, str)):
                return True
    return False


def describe(document: JsonObject, folder: PurePath) -> str:
    """Return what is not known because a Kustomization is not rendered."""
    used = ", ".join(f"`{name}`" for name in document if name not in _UNCHANGED) or "other sources"
    remedy = f"give the output of `kustomize build {folder}`"
    return f"a Kustomization changes objects before they are applied, and is not rendered ({used}); {remedy}"


def _is_checked_target(group: str, kind: str) -> bool:
    """Check whether a patch is of a kind that is checked; a target without a group is of that kind in any group."""
    known = {(group, kind)} if group else {key for key in KINDS if key[1] == lowered(kind)} | {(EXTENSION_GROUP, kind)}
    return bool(kind) and any(is_checked(f"{group}/v1", kind) for group, kind in known)


def _is_checked_text(text: str) -> bool:
    """Check whether the text of a patch has an object that is checked."""
    from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # JSON alone needs no YAML

    try:
        values = [each.value for each in parse_kubernetes_yaml(text.encode("utf-8", "surrogatepass"), "patch")]
    except InputError:
        return False
    return any(
        isinstance(value, dict) and is_checked(words(value.get("apiVersion")), words(value.get("kind")))
        for value in values
    )


def _texts(value: object) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
