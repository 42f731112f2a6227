"""The owners of resources, which a tag names."""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.redaction import masked_message

#: The name of the tag that contains the owner, unless the user names another one.
OWNER_TAG = "owner"


def owner_in_tags(tags: object, name: str = OWNER_TAG) -> str:
    """Return the value of the owner tag, with secrets masked; empty without one.

    Args:
        tags: the tags of a resource as it states them.
        name: the name of the tag, in any letter case, as Azure compares it.
    """
    if not isinstance(tags, Mapping):
        return ""
    folded = name.lower()
    values = (value for key, value in tags.items() if str(key).lower() == folded)
    return next((masked_message(value.strip()) for value in values if isinstance(value, str)), "")
