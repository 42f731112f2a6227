"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from typing import Any


def merged(target: Any, patch: Any, *, keep_null: bool = False) -> Any:
    """Return a document with a merge patch applied; `keep_null` keeps deletions, to merge two patches.

    Nothing that is given is changed, and what no patch touches is shared. Both are trees that JSON could hold.
    """
    if not isinstance(patch, dict):
        return patch
    outcome = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None and not keep_null:
            outcome.pop(key, None)
        else:
            outcome[key] = merged(outcome.get(key), value, keep_null=keep_null)
    return outcome
