"""YAML as OPA reads and writes it, which is as go-yaml v3 does, with every value going through JSON."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cmp_to_key
from io import StringIO
from math import isfinite

import yaml

from policyeng.rego.budget import charge
from policyeng.rego.builtins.formatting import write_float
from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.values import Value

_PARSER: type = getattr(yaml, "CLoader", yaml.Loader)
_TAG_PREFIX = "tag:yaml.org,2002:"
_WORDS: dict[str, tuple[str, Value]] = {
    **dict.fromkeys(("true", "True", "TRUE"), ("!!bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("!!bool", False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("!!null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("!!float", float("nan"))),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("!!float", float("inf"))),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("!!float", float("-inf"))),
}
_OLD_BOOLEANS = frozenset(
    ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF")
)
_RESOLVABLE = frozenset(("", "!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp"))
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9A-Fa-f]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_PREFIXED = re.compile(r"0(?:b([+-]?[01]+)|o([+-]?[0-7]+))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", re.DOTALL)
_CLOCK = re.compile(r"([0-9:]+)(?:[.,]([0-9]+))?(Z|[+-][0-9:]+)?")
#: An escape of JSON that go-yaml does not know.
_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")
#: Beyond so many digits a number is a float in any case.
_MOST_DIGITS = 100
_FEW_DECODED, _MANY_DECODED = 400_000, 4_000_000


class InvalidYamlError(BuiltinError):
    """A text that OPA does not take for YAML."""


@dataclass(eq=False)
class _YamlNode:
    kind: str
    tag: str = ""
    text: str = ""
    quoted: bool = False
    tagged: bool = False
    alias: _YamlNode | None = None
    children: list[_YamlNode] = field(default_factory=list)

    @property
    def short_tag(self) -> str:
        return self.alias.short_tag if self.alias else self.tag


def read(text: str, *, has_times: bool = False) -> Value:
    """Read the first document of a text; the others have to be well-formed.

    Args:
        text: what is read.
        has_times: read a date without quotes as a time, as in annotations; to `yaml.unmarshal` it is a text.

    Raises:
        InvalidYamlError: OPA does not take it for YAML.
    """
    try:
        node = _compose(text)
        if node is None:
            return None
        _normalize(node, set(), has_times=has_times)
        return _to_json(_Decoder().decode(node))
    except yaml.YAMLError as error:
        raise InvalidYamlError(f"yaml: {getattr(error, 'problem', None) or error}") from None


def write(json_text: str) -> str:
    """Write a JSON text as YAML.

    Raises:
        BuiltinError: it has what YAML has not.
    """
    stream = StringIO()
    emitter = _Emitter(stream)
    try:
        node = _compose(json_text)
        emitter.emit(yaml.StreamStartEvent())
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        for event in _events(_Decoder().decode(node) if node else None, 0):
            emitter.emit(event)
        # Otherwise a plain scalar would be followed by `...`.
        emitter.open_ended = False
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
    except yaml.YAMLError as error:
        raise BuiltinError(f"yaml: {getattr(error, 'problem', None) or error}") from None
    return stream.getvalue()


def _compose(text: str) -> _YamlNode | None:
    """Return the first document."""
    first: _YamlNode | None = None
    anchors: dict[str, _YamlNode] = {}
    # The nodes whose children come next.
    stack: list[_YamlNode] = []
    events: Iterator[Value] = yaml.parse(text, Loader=_PARSER)
    for event in events:
        kind = type(event)
        if kind is yaml.DocumentStartEvent and event.version not in (None, (1, 1)):
            raise InvalidYamlError("yaml: found incompatible YAML document")
        if kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            stack.pop()
            continue
        if kind is yaml.AliasEvent:
            if event.anchor not in anchors:
                raise InvalidYamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
            node = _YamlNode("alias", text=event.anchor, alias=anchors[event.anchor])
        elif kind is yaml.ScalarEvent:
            if event.style == '"' and _SLASH.search(text[event.start_mark.index : event.end_mark.index]):
                raise InvalidYamlError("yaml: found unknown escape character")
            node = _compose_scalar(event)
        elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
            name = "seq" if kind is yaml.SequenceStartEvent else "map"
            node = _YamlNode(name, _short_tag(event.tag) if event.tag not in (None, "!") else f"!!{name}")
        else:
            continue
        if stack:
            stack[-1].children.append(node)
        elif first is None:
            first = node
        if kind is not yaml.AliasEvent:
            if event.anchor is not None:
                anchors[event.anchor] = node
            if node.kind != "scalar":
                stack.append(node)
    return first


def _compose_scalar(event: Value) -> _YamlNode:
    node = _YamlNode("scalar", text=event.value, quoted=event.style not in (None, ""))
    if event.tag not in (None, "!"):
        node.tag, node.tagged = _short_tag(event.tag), True
    elif node.quoted:
        node.tag = "!!str"
    else:
        node.tag = "!!merge" if event.value == "<<" else _resolve("", event.value)[0]
    return node


def _short_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG_PREFIX)}" if tag.startswith(_TAG_PREFIX) else tag


def _resolve(tag: str, text: str) -> tuple[str, Value]:
    """Return the tag and the value of a scalar, as go-yaml."""
    if tag not in _RESOLVABLE:
        return tag, text
    if tag == "!!str":
        return tag, text
    found, value = _resolve_plain(tag, text)
    if tag in ("", found):
        return found, value
    if tag == "!!float" and found == "!!int" and value < 1 << 63:
        return tag, float(value)
    raise InvalidYamlError(f"yaml: cannot decode {found} `{text}` as a {tag}")


def _resolve_plain(tag: str, text: str) -> tuple[str, Value]:
    hint = text[:1]
    if hint in "yYnNtTfFoO~.+-0123456789" and text in _WORDS:
        return _WORDS[text]
    if hint == ".":
        number = _read_float(text)
        return ("!!str", text) if number is None else ("!!float", number)
    if not hint or hint not in "+-0123456789":
        return "!!str", text
    if tag in ("", "!!timestamp") and _is_timestamp(text):
        return "!!timestamp", text
    plain = text.replace("_", "")
    whole = _read_integer(plain)
    if whole is not None:
        return "!!int", whole
    number = _read_float(plain)
    if number is not None:
        return "!!float", number
    sign = -1 if plain.startswith("-") else 1
    if found := _PREFIXED.fullmatch(plain.removeprefix("-") if sign < 0 and plain[3:4] not in "+-" else plain):
        whole = sign * (int(found[1], 2) if found[1] else int(found[2], 8))
        if -(1 << 63) <= whole < 1 << 63:
            return "!!int", whole
    return "!!str", text


def _read_integer(plain: str) -> int | None:
    found = _INTEGER.fullmatch(plain)
    if found is None or len(plain) > _MOST_DIGITS:
        return None
    sign, *digits = found.groups()
    base = next(base for base, one in zip((16, 2, 8, 10), digits, strict=True) if one is not None)
    number = int(next(one for one in digits if one is not None), base)
    if sign == "-":
        return -number if number <= 1 << 63 else None
    return number if number < 1 << (63 if sign else 64) else None


def _read_float(plain: str) -> float | None:
    number = float(plain) if _FLOAT.fullmatch(plain) else float("inf")
    return number if isfinite(number) else None


def _is_timestamp(text: str) -> bool:
    if not _TIMESTAMP.fullmatch(text):
        return False
    from policyeng.rego.builtins.time import reads_as  # dates in YAML are rare

    return any(
        reads_as(layout, text)
        for layout in (
            "2006-1-2T15:4:5.999999999Z07:00",
            "2006-1-2t15:4:5.999999999Z07:00",
            "2006-1-2 15:4:5.999999999",
            "2006-1-2",
        )
    )


def _normalize(node: _YamlNode, seen: set[_YamlNode], *, has_times: bool) -> None:
    """Do to a document what OPA does before it is decoded."""
    if node in seen:
        return
    seen.add(node)
    if not has_times and node.tag == "!!timestamp" and not node.tagged and not node.quoted:
        node.tag = "!!str"
    if node.kind == "map":
        _collapse_merges(node)
        _drop_duplicates(node)
    for child in node.children:
        _normalize(child, seen, has_times=has_times)


def _pairs(node: _YamlNode) -> Iterator[tuple[_YamlNode, _YamlNode]]:
    return zip(node.children[::2], node.children[1::2], strict=True)


def _collapse_merges(node: _YamlNode) -> None:
    merged: list[_YamlNode] = []
    kept: list[_YamlNode] = []
    for key, value in _pairs(node):
        if key.kind != "scalar" or key.tag != "!!merge":
            kept += (key, value)
            continue
        if not merged:
            merge = _YamlNode("seq", "!!seq", children=merged)
            kept += (key, merge)
        merged += value.children if value.kind == "seq" else [value]
    if len(merged) > 1:
        node.children = kept


def _drop_duplicates(node: _YamlNode) -> None:
    places: dict[str, int] = {}
    kept: list[_YamlNode] = []
    for key, value in _pairs(node):
        text = None
        if key.kind == "scalar" and key.tag != "!!merge":
            try:
                text = _key_text(_Decoder().decode(key))
            except InvalidYamlError:
                text = None
        if text is not None and text in places:
            kept[places[text]] = value
            continue
        if text is not None:
            places[text] = len(kept) + 1
        kept += (key, value)
    node.children = kept


class _Timestamp(str):
    """A value with the tag of a time."""

    __slots__ = ()


class _Decoder:
    """Makes values of nodes, with go-yaml's limit on what aliases repeat."""

    def __init__(self) -> None:
        self._decoded = self._repeated = self._depth = 0
        self._open: set[_YamlNode] = set()
        #: The keys that the merges of a mapping must not set.
        self._merged: set[Value] | None = None

    def decode(self, node: _YamlNode) -> Value:
        """Return the value of a node."""
        self._count()
        if node.alias is not None:
            self._enter(node)
            value = self.decode(node.alias)
            self._leave(node)
            return value
        if node.kind == "scalar":
            return self._decode_scalar(node)
        if node.kind == "seq":
            return [self.decode(child) for child in node.children]
        names_only = all(key.short_tag in ("!!str", "!!merge") for key in node.children[::2])
        found: dict[Value, Value] = {}
        self._fill(node, found, names_only=names_only)
        return found

    def _count(self) -> None:
        charge(1)
        self._decoded += 1
        if self._depth:
            self._repeated += 1
        if self._repeated > 100 and self._decoded > 1000:
            share = (self._decoded - _FEW_DECODED) / (_MANY_DECODED - _FEW_DECODED)
            if self._repeated / self._decoded > 0.99 - 0.89 * min(max(share, 0.0), 1.0):
                raise InvalidYamlError("yaml: document contains excessive aliasing")

    def _enter(self, node: _YamlNode) -> None:
        if node in self._open:
            raise InvalidYamlError(f"yaml: anchor '{node.text}' value contains itself")
        self._open.add(node)
        self._depth += 1

    def _leave(self, node: _YamlNode) -> None:
        self._depth -= 1
        self._open.discard(node)

    def _decode_scalar(self, node: _YamlNode) -> Value:
        if node.tag == "!!str":
            return node.text
        tag, value = _resolve(node.tag, node.text)
        if tag == "!!timestamp":
            return _Timestamp(value)
        if tag != "!!binary":
            return value
        compact = node.text.translate({10: None, 13: None})
        if len(compact) % 4 or not re.fullmatch("[A-Za-z0-9+/]*={0,2}", compact):
            raise InvalidYamlError("yaml: !!binary value contains invalid base64 data")
        return base64.b64decode(compact).decode("utf-8", "policyeng.rego.each_byte")

    def _fill(self, node: _YamlNode, found: dict[Value, Value], *, names_only: bool) -> None:
        """Set the entries of a mapping, then those that it merges."""
        self._refuse_duplicates(node)
        merged, self._merged = self._merged, None
        merge: _YamlNode | None = None
        for key_node, value_node in _pairs(node):
            if key_node.kind == "scalar" and key_node.text == "<<" and key_node.tag == "!!merge":
                merge = value_node
                continue
            key = self._decode_key(key_node, names_only=names_only)
            if names_only and key is None:
                continue
            if merged is not None:
                if _typed(key) in merged:
                    continue
                merged.add(_typed(key))
            # 1, 1.0 and true are different keys in Go.
            found[_typed(key)] = self.decode(value_node)
        self._merged = merged
        if merge is not None:
            self._merge(node, merge, found, names_only=names_only)

    def _refuse_duplicates(self, node: _YamlNode) -> None:
        seen = set()
        for key in node.children[::2]:
            if (key.kind, key.text) in seen:
                raise InvalidYamlError(f"yaml: mapping key {key.text!r} already defined")
            seen.add((key.kind, key.text))

    def _decode_key(self, node: _YamlNode, *, names_only: bool) -> Value:
        key = self.decode(node)
        if type(key) is list or type(key) is dict:
            raise InvalidYamlError("yaml: invalid map key")
        if names_only and key is not None and type(key) is not str:
            # Go sets a string from the text of any scalar.
            while node.alias:
                node = node.alias
            return node.text
        return key

    def _merge(self, node: _YamlNode, merge: _YamlNode, found: dict[Value, Value], *, names_only: bool) -> None:
        before = self._merged
        if before is None:
            self._merged = {_typed(self.decode(key)) for key in node.children[::2]}
        for one in merge.children if merge.kind == "seq" else [merge]:
            target = one.alias or one
            if one.alias is not None:
                self._count()
                self._enter(one)
            if target.kind != "map":
                raise InvalidYamlError("yaml: map merge requires map or sequence of maps as the value")
            self._count()
            self._fill(target, found, names_only=names_only)
            if one.alias is not None:
                self._leave(one)
        self._merged = before


def _typed(key: Value) -> tuple[type, Value]:
    return type(key), key


def _to_json(value: Value) -> Value:
    """Return a decoded value as it is after JSON."""
    kind = type(value)
    if kind is list:
        return [_to_json(item) for item in value]
    if kind is dict:
        found: dict[str, Value] = {}
        for (_, key), item in value.items():
            text = _key_text(key)
            if text is None:
                raise InvalidYamlError("unsupported map key")
            # What is merged comes after what the mapping has.
            found.setdefault(text, _to_json(item))
        return found
    if kind is float:
        if not isfinite(value):
            raise InvalidYamlError("json: unsupported value")
        # Go writes such a float with its fewest digits and zeros.
        return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 1e21 else value
    if kind is _Timestamp:
        return _write_time(value)
    return value


def _write_time(text: str) -> str:
    """Return a timestamp of YAML as Go writes it in JSON, where the zone of the machine is UTC."""
    date, _, clock = text.replace("t", "T").replace(" ", "T", 1).partition("T")
    parts = _CLOCK.fullmatch(clock or "0:0:0")
    zone = parts[3] if parts and parts[3] and parts[3][1:] != "00:00" else "Z"
    time = ":".join(part.zfill(2) for part in parts[1].split(":")) if parts else ""
    fraction = ((parts[2] if parts else None) or "")[:9].rstrip("0")
    return f"{'-'.join(part.zfill(2) for part in date.split('-'))}T{time}{fraction and '.'}{fraction}{zone}"


def _key_text(key: Value) -> str | None:
    if type(key) is str:
        return key
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is int:
        return str(key)
    return _float_text(key, 32) if type(key) is float else None


def _float_text(number: float, bits: int) -> str:
    """Return a float as Go's format `g` with the fewest digits."""
    if number != number:
        return ".nan"
    if bits == 32 and isfinite(number):
        number = _narrow(number)
    if not isfinite(number):
        return ".inf" if number > 0 else "-.inf"
    if bits == 32:
        number = next(near for digits in range(9) if _narrow(near := float(f"{number:.{digits}e}")) == number)
    return f"{'-' if str(number).startswith('-') else ''}{write_float(abs(number), 'g', None)}"


def _narrow(number: float) -> float:
    """Round to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


_SPECIAL = re.compile("[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_NOT_PLAIN = re.compile("^[ #,\\[\\]{}&*!|>'\"%@`]|^---|^\\.\\.\\.|^[?-](?: |\\Z)|:(?: |\\Z)| #|[\t\u2028\u2029]| \\Z")
_BREAKS = "\n\u2028\u2029"
_PIECES = re.compile(f"[{_BREAKS}]|[^{_BREAKS}]+")
_LONGEST_KEY = 128


class _Emitter(yaml.emitter.Emitter):
    """Writes as the emitter of go-yaml: lines of any length, lists indented, and styles as they are given."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream, allow_unicode=True, width=float("inf"))  # type: ignore[arg-type]  # for any length

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  # never so
        super().increase_indent(flow, indentless=False)

    def check_empty_document(self) -> bool:
        return False

    def check_simple_key(self) -> bool:
        return isinstance(self.event, yaml.ScalarEvent) and _is_simple_key(self.event.value)

    def choose_scalar_style(self) -> str:
        return str(getattr(self.event, "style", ""))

    def write_single_quoted(self, text: str, split: bool = True) -> None:  # noqa: ARG002  # lines have any length
        self.write_indicator("'", need_whitespace=True)
        for piece in _PIECES.findall(text.replace("'", "''")):
            if piece in _BREAKS:
                self.write_line_break(piece)
                continue
            if self.indention:
                self.write_indent()
            self.stream.write(piece)
            self.column += len(piece)
            self.whitespace = self.indention = False
        self.write_indicator("'", need_whitespace=False)


def _events(value: Value, depth: int) -> Iterator[yaml.Event]:
    """Yield what writes a value of `_Decoder`."""
    kind = type(value)
    charge(2 * depth)
    if kind is list:
        yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not value)
        for item in value:
            yield from _events(item, depth + 1)
        yield yaml.SequenceEndEvent()
    elif kind is dict:
        yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not value)
        names = {key: item for (_, key), item in value.items()}
        for key in sorted(names, key=cmp_to_key(_compare_keys)):
            yield _scalar_event(key, _style(key, simple_key=_is_simple_key(key)))
            yield from _events(names[key], depth + 1)
        yield yaml.MappingEndEvent()
    elif kind is str:
        yield _scalar_event(value, _style(value, simple_key=False))
    else:
        yield _scalar_event(_scalar_text(value), "")


def _scalar_event(text: str, style: str) -> yaml.Event:
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _is_simple_key(text: str) -> bool:
    return len(text.encode()) <= _LONGEST_KEY and not any(one in text for one in _BREAKS)


def _style(text: str, *, simple_key: bool) -> str:
    special = _SPECIAL.search(text) is not None or _has_space_before_break(text)
    if "\n" in text and not simple_key:
        return '"' if special or text.endswith(" ") else "|"
    if "\n" in text or _resolve("", text)[0] != "!!str" or _BASE_60.fullmatch(text) or text in _OLD_BOOLEANS:
        return '"'
    if not special and not _NOT_PLAIN.search(text):
        return ""
    return '"' if special or "\t" in text or any(f"{one} " in text for one in _BREAKS) else "'"


def _scalar_text(value: Value) -> str:
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    return _float_text(value, 64) if type(value) is float else str(value)


def _has_space_before_break(text: str) -> bool:
    return any(f" {one}" in text for one in _BREAKS)


def _compare_keys(left: str, right: str) -> int:
    """Compare as go-yaml sorts keys: numbers in them by their values."""
    if left == right:
        return 0
    digits = False
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            digits = one.isdecimal()
            continue
        letter, other_letter = one.isalpha(), other.isalpha()
        if letter and other_letter:
            return -1 if one < other else 1
        if letter or other_letter:
            return -1 if (letter if digits else other_letter) else 1
        return -1 if _number_order(left, place, right) < _number_order(right, place, left) else 1
    return -1 if len(left) < len(right) else 1


def _number_order(text: str, place: int, other: str) -> tuple[int, int, str]:
    """Return what orders two texts from where they differ: a number, its length, the character."""
    number = 0
    if text[place] == "0" or other[place] == "0":
        before = place
        while before and text[before - 1].isdecimal():
            before -= 1
            if text[before] != "0":
                number = 1
    end = place
    while end < len(text) and text[end].isdecimal():
        # Go's integers wrap.
        number = (number * 10 + ord(text[end]) - ord("0") + (1 << 63)) % (1 << 64) - (1 << 63)
        end += 1
    return number, end, text[place]
