"""The words that policies share: tags, regulated, stage. `policies/lib/words.rego` says the same in Rego.

Every reading is three-valued where a word can be undecided, and no shape of a document makes one raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered

#: The tag that says how sensitive the work on a resource is.
CLASSIFICATION_TAG = "data-classification"
#: The tags that say the stage; the first one that is stated decides.
STAGE_TAGS = ("environment", "stage")
STAGES = frozenset({"dev", "test", "staging", "production"})

_TAGGED_OUTSIDE = (WORKSPACE_TYPE, f"{WORKSPACE_TYPE}/computes")

#: A reason shows no longer value than this, in characters.
_SHOWN = 60

#: White space as Unicode defines it and Rego trims it; `str.strip` alone would also take control characters off.
SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class Regulated:
    """Whether work is regulated and why; `decided` is None when something that could say so is missing."""

    decided: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class Stage:
    """One of dev, test, staging and production, and which tag says so, or that none does."""

    name: str
    reason: str


def trimmed(text: str) -> str:
    """A text without the white space around it that Rego's `trim_space` takes away."""
    return text.strip(SPACE)


def folded(value: object) -> str | None:
    """A text without case and without white space around it, for comparing; None for anything else and for a blank."""
    return (lowered(trimmed(value)) or None) if isinstance(value, str) else None


def squeezed(value: object) -> str | None:
    """As `folded` and without spaces, as names of regions and VM families compare: `East US` and `eastus` are one."""
    return (folded(value) or "").replace(" ", "") or None


def inside(document: object, *path: str) -> object:
    """The value at a path of keys; None where there is none, whatever stands on the way."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def tag(document: JsonObject | None, name: str) -> object:
    """The value of the tag of that name, compared without case; None when none is stated (absent, null or blank).

    The tags of a job and of other assets are in `properties.tags`, those of workspaces and computes never. A value that
    is not a string is returned as it is: it is stated, and no word is equal to it.
    """
    return next(_stated(document, name), None)


def _stated(document: JsonObject | None, name: str) -> Iterator[object]:
    is_tagged_outside = lowered(str(inside(document, "type"))) in _TAGGED_OUTSIDE
    within = None if is_tagged_outside else inside(document, "properties", "tags")
    for holder in (inside(document, "tags"), within):
        if isinstance(holder, dict):
            for key in sorted(key for key in holder if lowered(key) == lowered(name)):
                value = holder[key]
                if value is not None and not (isinstance(value, str) and folded(value) is None):
                    yield value


def shown(value: object) -> str:
    """How a reason writes a value down: of a long text only the length.

    Reports mask texts that hold a secret, and would not know a part of one.
    """
    if not isinstance(value, str):
        return "not text"
    text = trimmed(value)
    return f"`{text}`" if len(text) <= _SHOWN else f"a text of {len(text)} characters"


def regulated(resource: JsonObject, workspace: JsonObject | None, classifications: Iterable[str]) -> Regulated:
    """Whether the work on a resource is regulated.

    `hbiWorkspace` of the workspace makes it so, and so does the tag of the resource, else of the workspace. It is
    undecided when nothing makes it regulated and something that could is missing or unreadable.

    Args:
        resource: the ARM resource or workload.
        workspace: None when it is not in the snapshot.
        classifications: the regulated values of the tag `data-classification`, compared without case.
    """
    flag = inside(workspace, "properties", "hbiWorkspace")
    if flag is True or folded(flag) == "true":
        return Regulated(True, "`hbiWorkspace` of the workspace is true")
    value, of = _classification(resource, workspace)
    if folded(value) is not None and folded(value) in {folded(entry) for entry in classifications}:
        return Regulated(True, _tag_reason(CLASSIFICATION_TAG, of, value))
    if workspace is None:
        missing = "the workspace is not in the snapshot, so it is not known whether the work is regulated"
        return Regulated(None, missing)
    if flag is not None and not isinstance(flag, bool) and folded(flag) != "false":
        return Regulated(None, "`hbiWorkspace` of the workspace is neither true nor false")
    if not isinstance(value, str):
        return Regulated(None, _tag_reason(CLASSIFICATION_TAG, of, value))
    return Regulated(False, "no flag and no tag says so")


def _tag_reason(name: str, of: str, value: object) -> str:
    return f"the tag `{name}` of the {of} is {shown(value)}"


def _classification(resource: JsonObject, workspace: JsonObject | None) -> tuple[object, str]:
    """The classification that counts and whose tag it is; an empty text when none is stated."""
    for document, of in ((resource, "resource"), (workspace, "workspace")):
        value = tag(document, CLASSIFICATION_TAG)
        if value is not None:
            return value, of
    return "", "nobody"


def stage(resource: JsonObject, workspace: JsonObject | None) -> Stage:
    """The stage that work is in; an unknown one or none counts as production, so a missing tag loosens nothing."""
    for document, of in ((resource, "resource"), (workspace, "workspace")):
        for name in STAGE_TAGS:
            value = tag(document, name)
            if value is not None:
                return _stage(value, _tag_reason(name, of, value))
    return Stage("production", "no tag `environment` or `stage`, which counts as production")


def _stage(value: object, reason: str) -> Stage:
    said = folded(value)
    if said in STAGES:
        return Stage(said, reason)
    unknown = "is none of dev, test, staging and production and counts" if isinstance(value, str) else "counts"
    return Stage("production", f"{reason}, which {unknown} as production")
