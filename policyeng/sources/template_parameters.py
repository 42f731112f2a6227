"""Values for the parameters of ARM templates, as `az deployment ... --parameters` takes them: files and `NAME=VALUE`.

Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/parameter-files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from policyeng.errors import InputError, UsageError
from policyeng.frozen import frozen
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, shortened
from policyeng.sources.discovery import Named, content_of, display
from policyeng.sources.parsed import seen
from policyeng.sources.text import read_text


@frozen
class Unresolved:
    """A value that is not known yet, such as a secret in a key vault.

    Attributes:
        reason: why, and what to do about it.
        text: its stand-in in a name or an id, such as `{workspaceName}`; empty if it has none.
    """

    reason: str
    text: str = ""


def read_parameters(entries: Sequence[str]) -> dict[str, object]:
    """Return the values of `--parameters` by name in lower case; later ones take precedence.

    Args:
        entries: parameter files (an `@` before the name is ignored), JSON objects, or `NAME=VALUE`, whose value is
            JSON or else text.

    Raises:
        UsageError: an entry is none of these.
        InputError: a file cannot be read, or does not contain parameters.
    """
    values: dict[str, object] = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if equals and name.strip().isidentifier():
            values[name.strip().lower()] = _parse_value(text)
        elif entry.lstrip().startswith("{"):
            values |= parameters_of(_parse_value(entry.strip()), "--parameters")
        else:
            values |= _read_file(entry)
    return values


def _read_file(entry: str) -> dict[str, object]:
    path = Path(entry.removeprefix("@"))
    if not path.is_file():
        remedy = "give a parameter file or NAME=VALUE"
        raise UsageError(f"`{entry}` is neither a file nor NAME=VALUE", remedy=remedy)
    file = display(path)
    content = content_of(Named(file, path), None, DEFAULT_MAX_BYTES)
    documents = read_text(content, file, max_bytes=DEFAULT_MAX_BYTES).documents
    return parameters_of(documents[0][1] if len(documents) == 1 else None, file)


def parameters_of(document: object, file: str) -> dict[str, object]:
    """Return the values of a parameter file by name in lower case.

    Raises:
        InputError: the document is not a parameter file.
    """
    inner = document.get("parameters", document) if isinstance(document, Mapping) else None
    if not isinstance(inner, Mapping) or not all(isinstance(entry, Mapping) for entry in inner.values()):
        message = f"not a parameter file: {seen(document)}"
        raise InputError(message, place=(file,), remedy="give `parameters`, each an object with its `value`")
    return {name.lower(): _find_value(name, entry) for name, entry in inner.items()}


def _find_value(name: str, entry: Mapping[str, object]) -> object:
    if "value" in entry:
        return entry["value"]
    where = "in a key vault" if "reference" in entry else "not in the parameter file"
    return Unresolved(f"the value of the parameter `{shortened(name)}` is {where}")


def _parse_value(text: str) -> object:
    """Parse a value as JSON, else as text; a version such as `1.10` is also text."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return text if isinstance(value, float) else value
