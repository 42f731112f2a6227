"""HTML in which text from a snapshot shows as it is and cannot become markup."""

from __future__ import annotations

import json
import re

from markupsafe import Markup, escape

from policyeng.report.escaping import visible

_CODE = re.compile(r"`([^`\n]+)`")
#: What could end a script element or begin a comment in it; as JSON escapes they mean the same.
_ENDING = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def shown(value: object) -> object:
    """Give what a template prints with every character visible; markup of ours passes as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: str) -> Markup:
    """Give text as HTML, what it has between backticks as code."""
    parts = _CODE.split(visible(text))
    return Markup("").join(_code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def island(value: object) -> Markup:
    """Give a JSON value for a script element, which nothing in it can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(visible(text).translate(_ENDING))  # noqa: S704  # no markup is left in it


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)
