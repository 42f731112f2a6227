"""Detection of template placeholders in documents that must be rendered before parsing."""

from __future__ import annotations

from policyeng.errors import InputError

_SIGNS = (("{{", "}}"), ("{%", "%}"))


def refuse_placeholders(text: str, file: str, language: str) -> None:
    """Refuse a text that is not JSON or YAML if it has a placeholder outside of quotes and comments.

    Raises:
        InputError: there is one, with its line and column.
    """
    for number, line in enumerate(text.split("\n"), 1):
        for opening, closing in _SIGNS:
            start = line.find(opening)
            if start >= 0 and line.find(closing, start) > 0 and _is_outside(line[:start]):
                message = f"not plain {language}: it holds `{opening}...{closing}` placeholders"
                place = (f"{file}:{number}:{start + 1}",)
                raise InputError(message, place=place, remedy="render the template first")


def _is_outside(before: str) -> bool:
    """Return whether the line before a placeholder opens no string and no comment; `${{` is text in YAML."""
    return before.count('"') % 2 == 0 and before.count("'") % 2 == 0 and "#" not in before and before[-1:] != "$"
