"""Make text from a snapshot safe to show: what a reader cannot see is written out, and no renderer obeys it."""

from __future__ import annotations

import json
import re

from policyeng.later import lazy_pattern

# Build agents obey `##vso[...]` and `##[...]` anywhere in a line, and `::command` where a line begins; wrapping begins
# lines at spaces.
_AGENT_COMMAND = lazy_pattern(r"#(?=#(?:vso)?\[)|(?:(?<=\s)|^):(?=:[A-Za-z])", re.MULTILINE)
# Markdown gives these a meaning; as numeric references they have none (CommonMark 0.31, 2.5).
_MARKUP = lazy_pattern(r"[\\`*_{}\[\]<>|~&$@#]|:(?=\S)|(?<=www)\.", re.IGNORECASE)
_CALLING = lazy_pattern(r"&#(?:64|35);")


def _as_json_escape(text: str) -> str:
    return json.dumps(text)[1:-1]


def visible(text: str, *, keep: str = "") -> str:
    r"""Write control, bidirectional, zero-width and other unprintable characters as JSON escapes (`\u202e`).

    Text meant for a build agent to obey is broken up in the same way. Inside a JSON string the value does not change,
    so whole JSON documents may pass, with `keep="\n"` for their own newlines. Idempotent.
    """
    if not (text.replace(keep, "") if keep else text).isprintable():
        text = "".join(c if c.isprintable() or c in keep else _as_json_escape(c) for c in text)
    if "##" not in text and "::" not in text:  # looked for first, because reports are long
        return text
    return _AGENT_COMMAND.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def compact(value: object) -> str:
    """Give a JSON value on one line, visible; numbers that JSON lacks become strings."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        from pydantic_core import to_json  # only policies in Python give such values

        plain = to_json(value, inf_nan_mode="strings", fallback=str)
        text = json.dumps(json.loads(plain), ensure_ascii=False)
    return visible(text)


def markdown_text(text: str) -> str:
    """Give text that GitHub Markdown shows as it stands within a line or a table: no markup, link, mention or emoji.

    Source: the zero-width space after `@` and `#` is what Renovate writes to keep names from being notified.
    """
    return _CALLING.sub(lambda found: f"{found[0]}&#8203;", _referenced(text))


def markdown_code(text: str) -> str:
    """Give text as a `<code>` element that keeps every character, also inside a table."""
    return f"<code>{_referenced(text)}</code>"


def _referenced(text: str) -> str:
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", visible(text))
