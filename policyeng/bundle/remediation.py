"""Remediation of failures: text, and JSON Patches (RFC 6902) where a fixed change is enough.

A patch is a claim that `policyeng verify` proves: where it applies, the finding passes after it and nothing gets worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from policyeng.bundle.header_validators import WORKSPACE, Strict, require_pointer
from policyeng.frozen import frozen
from policyeng.models import Checked, JsonObject, Limited, lowered

#: The members of each operation in addition to `op` and `path`. A `move` is written as `copy` and `remove`.
_MEMBERS = {"add": ("value",), "replace": ("value",), "test": ("value",), "copy": ("from",), "remove": ()}
#: The fields that identify the resource; changing them would hide the failure.
_IDENTITY = frozenset({"/id", "/type", "/name"})
#: The steps of a workload are of the target that its declaration states.
_MADE_OF = {"/runs": "/target"}


def _operations(steps: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    for step in steps:
        _require_operation(step)
    if any(step["path"] == "" for step in steps) and len(steps) > 1:
        raise ValueError("a patch that deletes the resource must be its only operation")
    return steps


def _pointers(pointers: tuple[str, ...]) -> tuple[str, ...]:
    for pointer in pointers:
        require_pointer(pointer)
    return pointers


@frozen(kw_only=True)
class Patch(Strict):
    """A JSON Patch, and where it is the remedy.

    Attributes:
        patch: its operations. A path `workspace:/...` is one of the workspace, the path `""` of a sole `remove` the
            resource itself. Objects that a path leads through are made where they are absent. `copy` hands on plain
            values, and none that is blank.
        answers: the paths of the denials that it clears, `*` for any one segment; all denials if empty.
        of: the ARM type of the resource to patch, which a workload was derived from. Without it the patch of a
            policy about workloads applies to the declared workload.
        provided: ids of policies, or areas, that limit its use: if an outcome of one of them would become worse, the
            patch is not offered for that estate.
    """

    patch: Annotated[tuple[JsonObject, ...], Limited(min_length=1), Checked(_operations)]
    answers: Annotated[tuple[str, ...], Checked(_pointers)] = ()
    of: str = ""
    provided: tuple[str, ...] = ()

    @property
    def written(self) -> Iterator[str]:
        """The paths that it changes."""
        return (step["path"] for step in self.patch if step["op"] != "test")


@frozen(kw_only=True)
class Remediation(Strict):
    """The fix of a failure: text, and JSON Patches. For each denial the first one that answers it and applies counts.

    A single patch may be written as `patch: [operations]`.
    """

    text: Annotated[str, Limited(min_length=1)]
    patches: tuple[Patch, ...] = ()


def as_written(value: object) -> object:
    """Return a remediation that is written as text alone, or with one patch, in its whole form."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict) or "patch" not in value:
        return value
    if "patches" in value:
        raise ValueError("there are both `patch` and `patches`; write `patch` as one of the `patches`")
    rest = {key: given for key, given in value.items() if key != "patch"}
    return {**rest, "patches": [{"patch": value["patch"]}] if value["patch"] else []}


def require_declared(remediation: Remediation, inspects: Iterable[str], types: Iterable[str]) -> None:
    """Raise ValueError if a patch changes fields that the policy does not inspect, or that identify the resource.

    Args:
        remediation: the remediation of the header.
        inspects: the pointers that the header inspects.
        types: the types that the policy evaluates.
    """
    declared, lower_types = [*inspects], {lowered(kind) for kind in types}
    declared += [_MADE_OF[pointer] for pointer in declared if pointer in _MADE_OF and "workload" in lower_types]
    for entry in remediation.patches:
        if entry.of and "workload" not in lower_types:
            raise ValueError("`of` is only for patches of policies with `workload` in `judges`")
        for path in entry.written:
            if path in _IDENTITY:
                raise ValueError(f"a patch that changes `{path}` would only hide the failure")
            if entry.of:
                if not path.startswith("/properties/"):
                    raise ValueError(
                        f"a patch `of` what a workload was derived from changes `/properties`, not `{path}`"
                    )
            elif path and not any(is_at_or_below(path, pointer) for pointer in declared):
                raise ValueError(f"a patch changes `{path}`, which is neither in `inspects` nor below it")


def is_at_or_below(path: str, pointer: str) -> bool:
    """Return whether a path is at or below a JSON Pointer; `*` in the pointer matches any one segment."""
    parts, above = path.split("/"), pointer.split("/")
    return len(parts) >= len(above) and all(one in ("*", part) for part, one in zip(parts, above, strict=False))


def _require_operation(step: JsonObject) -> None:
    op = step.get("op")
    if op not in _MEMBERS:
        raise ValueError(f"`{op}` is no operation of a patch; they are {', '.join(_MEMBERS)}")
    if set(step) != {"op", "path", *_MEMBERS[op]}:
        raise ValueError(f"an operation `{op}` has the members {', '.join(('op', 'path', *_MEMBERS[op]))}")
    for pointer in (step["path"], *(step[name] for name in _MEMBERS[op] if name == "from")):
        if not isinstance(pointer, str):
            raise ValueError(f"`{pointer}` is no JSON Pointer")  # noqa: TRY004  # pydantic reports ValueErrors
        if not (pointer == "" and op == "remove"):
            require_pointer(pointer)


def split_pointer(path: str) -> tuple[bool, str]:
    """Return whether a path is one of the workspace, and the JSON Pointer in it."""
    return path.startswith(WORKSPACE), path.removeprefix(WORKSPACE)
