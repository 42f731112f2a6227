"""Escaping of text from a snapshot for HTML."""

from __future__ import annotations

import json
import re

from markupsafe import Markup, escape

from policyeng.report.escaping import visible

_CODE = re.compile(r"`([^`\n]+)`")
_ADDRESS = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[!-~]*)?")
#: Characters that could end a script element or start a comment in it, as equivalent JSON escapes.
_ENDING = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def escape_unprintable(value: object) -> object:
    """Escape unprintable characters in a template value; trusted markup stays unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: str) -> Markup:
    """Escape text for HTML, and format parts between backticks as code."""
    parts = _CODE.split(visible(text))
    return Markup("").join(_code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def link(address: str) -> Markup:
    """Return a link to a page on the web, or any other text escaped. Only policies name addresses, and no snapshot."""
    if not _ADDRESS.fullmatch(address):
        return Markup.escape(visible(address))
    anchor = '<a class="page" href="{0}" target="_blank" rel="noopener noreferrer">{1}</a>'
    return Markup(anchor).format(address, address.removeprefix("https://"))  # noqa: S704  # our own markup


def embed_json(value: object) -> Markup:
    """Return a JSON value for a script element; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(visible(text).translate(_ENDING))  # noqa: S704  # no markup is left in it


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)
