"""JSON values as compact YAML: on one line where they fit, readable as YAML 1.1 and 1.2 alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from policyeng.parsing.yaml_text import kubernetes

#: Text that needs no quotes anywhere, unless it reads as another type.
_PLAIN = re.compile(r"""[\w/](?:[\w/.+*@()<>=;'"~-]|:(?=[\w/.*])|[ ](?=[\w/.+*@(<>=;'"~-]))*""")


def block(value: Mapping[str, object], width: int = 100) -> str:
    """Return a mapping as lines of YAML; what does not fit into a line goes below its key, indented."""
    return "\n".join(_lines(value, "", width))


def flow(value: object) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(key)}: {flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _lines(value: object, indent: str, width: int) -> Iterator[str]:
    """Yield the members of a mapping or list that is not empty."""
    entries = (
        ((f"{_key(key)}:", inner) for key, inner in value.items())
        if isinstance(value, Mapping)
        else (("-", inner) for inner in value)  # type: ignore[attr-defined]  # what is no mapping is a list here
    )
    for head, inner in entries:
        line = f"{indent}{head} {flow(inner)}"
        if len(line) <= width or not inner or not isinstance(inner, Mapping | list | tuple):
            yield line
        elif head == "-":
            first, *others = _lines(inner, f"{indent}  ", width)
            yield f"{indent}- {first.lstrip()}"
            yield from others
        else:
            yield f"{indent}{head}"
            yield from _lines(inner, f"{indent}  ", width)


def _key(text: str) -> str:
    """Return a key at the beginning of a line, where commas part nothing."""
    return text if _text(re.sub(r"(?<=\w),", "", text))[0] != '"' else _text(text)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and kubernetes(text) == text else f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"
