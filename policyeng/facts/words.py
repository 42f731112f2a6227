"""The terms that policies share: tags, regulated, stage. `policies/lib/words.rego` is the same in Rego.

Functions return None if a term cannot be decided, and accept documents of any shape without errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, TypeVar

from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered

_Entry = TypeVar("_Entry")

#: The tag for the sensitivity of the work on a resource, and its other spellings, in lower case.
CLASSIFICATION_TAG = "data-classification"
CLASSIFICATION_TAGS = frozenset(
    {CLASSIFICATION_TAG, "data_classification", "data classification", "dataclassification"}
)
#: The tags for the stage; the first one that is set decides.
STAGE_TAGS = ("environment", "stage")
STAGES = frozenset({"dev", "test", "staging", "production"})

#: Types in a workspace whose tags are not in `properties`, as those of jobs and other assets are.
_TAGGED_OUTSIDE = frozenset(
    f"{WORKSPACE_TYPE}/{kind}"
    for kind in (
        "computes",
        *(f"{endpoint}endpoints{part}" for endpoint in ("online", "batch") for part in ("", "/deployments")),
    )
)

#: A reason shows no longer value than this, in characters.
_SHOWN = 60

#: White space as Unicode defines it and Rego trims it; `str.strip` alone would also take control characters off.
SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


class Regulated(NamedTuple):
    """Whether work is regulated and why; `decided` is None if a relevant value is missing."""

    decided: bool | None
    reason: str


class WorkloadStage(NamedTuple):
    """One of dev, test, staging and production, and the tag that decides it, or that there is none."""

    name: str
    reason: str


def trim(text: str) -> str:
    """Return a text without the white space around it that Rego's `trim_space` takes away."""
    return text.strip(SPACE)


def fold(value: object) -> str | None:
    """Return a text without case and without white space around it, for comparing.

    None for anything else and for a blank.
    """
    return (lowered(value.strip(SPACE)) or None) if isinstance(value, str) else None


def is_blank(value: object) -> bool:
    """Check whether a value is null, or a text with nothing but white space in it."""
    return value is None or (isinstance(value, str) and fold(value) is None)


def squeeze(value: object) -> str | None:
    """Return as `folded` and without spaces, so that the regions `East US` and `eastus` are equal."""
    return (fold(value) or "").replace(" ", "") or None


def list_stated_keys(holder: Mapping[str, object]) -> list[str]:
    """Return the keys of an object that are stated, whether or not it may have others, which are not known."""
    keys: Callable[[], Iterable[str]] = getattr(holder, "known_keys", holder.keys)
    return list(keys())


def list_stated(holder: Mapping[str, Iterable[_Entry]], key: str) -> list[_Entry]:
    """Return the entries of the list under a key that are stated, whether or not there may be others.

    A policy that looks for one entry that suffices looks through these first, and calls `require_all` if none does.
    """
    if key not in list_stated_keys(holder):
        return []
    entries = holder[key]
    known: Callable[[], Iterator[_Entry]] = getattr(entries, "known_items", entries.__iter__)
    return list(known())


def require_all(holder: Mapping[str, Iterable[object]], key: str) -> None:
    """Make the outcome unknown if the list under a key may have entries that are not known."""
    for _ in holder.get(key, ()):
        pass


def get_inside(document: object, *path: str) -> object:
    """Return the value at a path of keys; None if there is none, whatever the values on the path are."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def tag(document: JsonObject | None, name: str) -> object:
    """Return the value of the tag of a name, compared without case; None if absent, null or blank.

    Jobs and other assets of a workspace have theirs in `properties.tags`, all other resources never. A value that is
    not a string is returned as it is: it is stated, and no word is equal to it.
    """
    return next(_stated(document, {lowered(name)}), None)


def classifications(document: JsonObject | None) -> list[object]:
    """Return the values of the tag `data-classification` in any of its spellings, as `tag` gives one of them."""
    return list(_stated(document, CLASSIFICATION_TAGS))


def _stated(document: JsonObject | None, names: Set[str]) -> Iterator[object]:
    kind = get_inside(document, "type")
    is_asset = not isinstance(kind, str) or _is_asset(lowered(kind))
    within = get_inside(document, "properties", "tags") if is_asset else None
    for holder in (get_inside(document, "tags"), within):
        if isinstance(holder, dict):
            for key in sorted(key for key in holder if lowered(key) in names):
                value = holder[key]
                if not is_blank(value):
                    yield value


def _is_asset(kind: str) -> bool:
    return kind.startswith(f"{WORKSPACE_TYPE}/") and kind not in _TAGGED_OUTSIDE


def format_value(value: object) -> str:
    """Return how a reason writes a value down: of a long text only the length.

    Reports mask texts that contain a secret, and would not know a part of one.
    """
    if not isinstance(value, str):
        return "not text"
    text = trim(value)
    return f"`{text}`" if len(text) <= _SHOWN else f"a text of {len(text)} characters"


def regulated(resource: JsonObject, workspace: JsonObject | None, sensitive: Iterable[str]) -> Regulated:
    """Return whether the work on a resource is regulated.

    `hbiWorkspace` of the workspace makes it so, and so does the tag of the resource, else of the workspace. It is
    undecided when nothing makes it regulated and something that could is missing or unreadable. A tag that exists in
    several spellings makes it so with any of its values.

    Args:
        resource: the ARM resource or workload.
        workspace: None when it is not in the snapshot.
        sensitive: the regulated values of the tag `data-classification`, compared without case.
    """
    flag = get_inside(workspace, "properties", "hbiWorkspace")
    if flag is True or fold(flag) == "true":
        return Regulated(True, "`hbiWorkspace` of the workspace is true")
    values, of = _classification(resource, workspace)
    known = {fold(entry) for entry in sensitive} - {None}
    for value in values:
        if fold(value) in known:
            return Regulated(True, _tag_reason(CLASSIFICATION_TAG, of, value))
    if workspace is None:
        missing = "the workspace is not in the snapshot, so it is not known whether the work is regulated"
        return Regulated(None, missing)
    if flag is not None and not isinstance(flag, bool) and fold(flag) != "false":
        return Regulated(None, "`hbiWorkspace` of the workspace is neither true nor false")
    for value in values:
        if not isinstance(value, str):
            return Regulated(None, _tag_reason(CLASSIFICATION_TAG, of, value))
    return Regulated(False, "no flag and no tag states so")


def _tag_reason(name: str, of: str, value: object) -> str:
    return f"the tag `{name}` of the {of} is {format_value(value)}"


def _classification(resource: JsonObject, workspace: JsonObject | None) -> tuple[list[object], str]:
    """Return the relevant classifications and the owner of the tag; an empty list and `nobody` without a tag."""
    for document, of in ((resource, "resource"), (workspace, "workspace")):
        if values := classifications(document):
            return values, of
    return [], "nobody"


def stage(resource: JsonObject, workspace: JsonObject | None) -> WorkloadStage:
    """Return the stage that work is in.

    An unknown one or none counts as production, so a missing tag loosens nothing.
    """
    for document, of in ((resource, "resource"), (workspace, "workspace")):
        for name in STAGE_TAGS:
            if values := list(_stated(document, {name})):
                return _stage(values, name, of)
    return WorkloadStage("production", "no tag `environment` or `stage`, which counts as production")


def _stage(values: Sequence[object], name: str, of: str) -> WorkloadStage:
    """Return the stage that the values of one tag give.

    There are several if its name also exists in other letters.
    """
    value, folds = values[0], {fold(value) for value in values}
    if len(folds) > 1:
        return WorkloadStage(
            "production", f"the tag `{name}` of the {of} has several values, which counts as production"
        )
    reason, name_of_stage = _tag_reason(name, of, value), fold(value)
    if name_of_stage in STAGES:
        return WorkloadStage(name_of_stage, reason)
    unknown = "is none of dev, test, staging and production and counts" if isinstance(value, str) else "counts"
    return WorkloadStage("production", f"{reason}, which {unknown} as production")
