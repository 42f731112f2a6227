"""Builtins that write and read JSON, Base64, hexadecimal text, URLs and UUIDs."""

from __future__ import annotations

import base64
import codecs
import re
from urllib.parse import quote_plus, unquote_to_bytes

from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins import yaml_values
from policyeng.rego.builtins.go_text import InvalidJsonError, UrlError, parse_url, read_json, skip_space, to_value
from policyeng.rego.builtins.registry import (
    BuiltinError,
    OperandError,
    builtin,
    check_object,
    check_string,
    wrong_type,
)
from policyeng.rego.numbers import read_number
from policyeng.rego.values import UNDEFINED, Value, from_key, members, ordered_keys, to_json, to_text, write_json

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_BASE64_URL = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MOST_PARAMETERS = 10000
_NEWLINES = str.maketrans("", "", "\r\n")


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    """Replace each byte that is not UTF-8, as Go does; Python replaces each sequence of them."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("policyeng.rego.each_byte", _replace_each_byte)


def decode_utf8(data: bytes) -> str:
    """Decode UTF-8 as Go does when it writes JSON."""
    return data.decode("utf-8", "policyeng.rego.each_byte")


@builtin("json.marshal")
def marshal_json(value: Value) -> Value:
    """Write a value as JSON."""
    return write_json(value, "", "")


@builtin("json.marshal_with_options")
def marshal_json_with_options(value: Value, options: Value) -> Value:
    """Write a value as JSON with an indentation."""
    indent, prefix = "\t", ""
    pretty: bool | None = None
    check_object(2, options)
    for index, key in enumerate(ordered_keys(options)):
        option = options[key]
        if type(key) is not str:
            raise OperandError(
                f"operand 2 failed to stringify key {to_text(from_key(key))} at index {index}: "
                f"{wrong_type(index, from_key(key), 'string')}"
            )
        if key in ("prefix", "indent"):
            if type(option) is not str:
                raise OperandError(
                    f'operand 2 key "{key}" failed cast to string: {wrong_type(index, option, "string")}'
                )
            prefix, indent = (option, indent) if key == "prefix" else (prefix, option)
        elif key == "pretty":
            if type(option) is not bool:
                raise OperandError('operand 2 key "pretty" failed cast to bool')
            pretty = option
        else:
            raise OperandError(f'operand 2 object contained unknown key "{key}"')
    if pretty is None:
        pretty = "prefix" in options or "indent" in options
    return prefix + write_json(value, f"\n{prefix}", indent) if pretty else write_json(value, "", "")


@builtin("json.unmarshal")
def unmarshal_json(text: Value) -> Value:
    """Read a value from JSON."""
    value, end = read_json(charged(check_string(1, text)), read_number)
    while True:
        # OPA takes what follows for nothing where it is a null.
        end = skip_space(text, end)
        if end == len(text) or text.startswith("null", end):
            return value
        raise BuiltinError(f"invalid character {text[end]!r} after top-level value")


@builtin("json.is_valid")
def is_valid_json(text: Value) -> Value:
    """Return whether a value is the text of one JSON document."""
    if type(text) is not str:
        return False
    try:
        return skip_space(text, read_json(text, len)[1]) == len(text)
    except InvalidJsonError:
        return False


@builtin("yaml.marshal")
def marshal_yaml(value: Value) -> Value:
    """Write a value as YAML."""
    return yaml_values.write(write_json(value, "", ""))


@builtin("yaml.unmarshal")
def unmarshal_yaml(text: Value) -> Value:
    """Read a value from YAML."""
    return yaml_values.read(check_string(1, text))


@builtin("yaml.is_valid")
def is_valid_yaml(text: Value) -> Value:
    """Return whether a value is the text of a YAML document."""
    if type(text) is not str:
        return False
    try:
        yaml_values.read(text)
    except yaml_values.InvalidYamlError:
        return False
    return True


@builtin("base64.encode")
def encode_base64(text: Value) -> Value:
    """Encode a string as Base64."""
    return charged(base64.b64encode(check_string(1, text).encode()).decode())


@builtin("base64.decode")
def decode_base64(text: Value) -> Value:
    """Decode a string from Base64."""
    return charged(decode_utf8(_decode_base64(check_string(1, text), _BASE64)))


@builtin("base64.is_valid")
def is_valid_base64(text: Value) -> Value:
    """Return whether a value is a string in Base64."""
    if type(text) is not str:
        return False
    compact = text.translate(_NEWLINES)
    return len(compact) % 4 == 0 and _BASE64.fullmatch(compact) is not None


@builtin("base64url.encode")
def encode_base64_url(text: Value) -> Value:
    """Encode a string as Base64 for URLs."""
    return charged(base64.urlsafe_b64encode(check_string(1, text).encode()).decode())


@builtin("base64url.encode_no_pad")
def encode_base64_url_without_padding(text: Value) -> Value:
    """Encode a string as Base64 for URLs, without padding."""
    return encode_base64_url(text).rstrip("=")


@builtin("base64url.decode")
def decode_base64_url(text: Value) -> Value:
    """Decode a string from Base64 for URLs; the padding may be absent."""
    return charged(decode_utf8(read_base64_url(check_string(1, text))))


def read_base64_url(text: str) -> bytes:
    """Return the bytes of a text in Base64 for URLs; the padding may be absent.

    Raises:
        BuiltinError: it is not valid.
    """
    if not text.endswith("="):
        rest = len(text.encode()) % 4
        if rest == 1:
            raise BuiltinError(f"illegal base64url string: {text}")
        text += "=" * (-rest % 4)
    return _decode_base64(text, _BASE64_URL)


@builtin("hex.encode")
def encode_hex(text: Value) -> Value:
    """Encode a string as hexadecimal digits."""
    return charged(check_string(1, text).encode().hex())


@builtin("hex.decode")
def decode_hex(text: Value) -> Value:
    """Decode a string from hexadecimal digits."""
    if not _HEX.fullmatch(check_string(1, text)):
        raise BuiltinError("encoding/hex: invalid byte")
    if len(text) % 2:
        raise BuiltinError("encoding/hex: odd length hex string")
    return charged(decode_utf8(bytes.fromhex(text)))


@builtin("urlquery.encode")
def encode_query(text: Value) -> Value:
    """Encode a string as a part of a URL query."""
    return charged(quote_plus(check_string(1, text)))


@builtin("urlquery.decode")
def decode_query(text: Value) -> Value:
    """Decode a part of a URL query."""
    return charged(_unescape(check_string(1, text).replace("+", " ")))


@builtin("urlquery.encode_object")
def encode_query_object(parameters: Value) -> Value:
    """Encode an object as a URL query."""
    found = {}
    for key, value in check_object(1, parameters).items():
        values = members(value) if type(value) is set else value if type(value) is list else [value]
        if any(type(one) is not str for one in values):
            raise OperandError("operand 1 values must be string, array[string], or set[string]")
        found[key] = values
    pairs = []
    for key, values in sorted(to_json(found).items()):
        charge(len(key) * len(values))
        pairs += [f"{quote_plus(key)}={quote_plus(one)}" for one in values]
    return charged("&".join(pairs))


@builtin("urlquery.decode_object")
def decode_query_object(query: Value) -> Value:
    """Decode a URL query to an object of arrays."""
    if check_string(1, query).count("&") >= _MOST_PARAMETERS:
        raise BuiltinError("number of URL query parameters exceeded limit")
    found: dict[str, list[str]] = {}
    for parameter in filter(None, query.split("&")):
        if ";" in parameter:
            raise BuiltinError("invalid semicolon separator in query")
        key, _, value = parameter.replace("+", " ").partition("=")
        found.setdefault(_unescape(key), []).append(_unescape(value))
    return found


@builtin("uri.parse")
def parse_uri(text: Value) -> Value:
    """Split a URI into its parts."""
    try:
        url = parse_url(check_string(1, text))
    except UrlError as error:
        raise BuiltinError(str(error)) from None
    hostname, port = url.split_host()
    parts = {
        "scheme": url.scheme,
        "hostname": hostname,
        "port": port,
        "path": url.path,
        "raw_path": url.raw_path or url.path,
        "raw_query": url.raw_query,
        "fragment": url.fragment,
    }
    return {name: to_value(part) for name, part in parts.items() if part}


@builtin("uri.is_valid")
def is_valid_uri(text: Value) -> Value:
    """Return whether a value is a URI that is not empty."""
    if type(text) is not str or not text:
        return False
    try:
        parse_url(text)
    except UrlError:
        return False
    return True


def _decode_base64(text: str, alphabet: re.Pattern[str]) -> bytes:
    compact = text.translate(_NEWLINES)
    if len(compact) % 4 or not alphabet.fullmatch(compact):
        raise BuiltinError("illegal base64 data")
    return base64.b64decode(compact, None if alphabet is _BASE64 else b"-_")


def _unescape(text: str) -> str:
    if wrong := _WRONG_ESCAPE.search(text):
        raise BuiltinError(f'invalid URL escape "{text[wrong.start() : wrong.start() + 3]}"')
    return decode_utf8(unquote_to_bytes(text))


_UUID = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_EPOCH = 0x01B21DD213814000
_VARIANTS = ((0xC0, 0x80, "RFC4122"), (0xE0, 0xC0, "Microsoft"), (0xE0, 0xE0, "Future"))
_DOMAINS = {0: "Person", 1: "Group", 2: "Org"}
_CASTS = {0: "global:unicast", 1: "global:multicast", 2: "local:unicast", 3: "local:multicast"}


@builtin("uuid.parse")
def parse_uuid(text: Value) -> Value:
    """Return the parts of a UUID."""
    data = _read_uuid(check_string(1, text))
    if data is None:
        return UNDEFINED
    version = data[6] >> 4
    found: dict[str, Value] = {
        "version": version,
        "variant": next((name for mask, bits, name in _VARIANTS if data[8] & mask == bits), "Reserved"),
    }
    if version in (1, 2):
        ticks = int.from_bytes(data[:4]) | int.from_bytes(data[4:6]) << 32
        ticks = (ticks | (int.from_bytes(data[6:8]) & 0xFFF) << 48) - _EPOCH
        found["time"] = (ticks * 100 + (1 << 63)) % (1 << 64) - (1 << 63)  # Go's integers wrap
        found["nodeid"] = data[10:].hex("-")
        found["macvariables"] = _CASTS[data[10] & 3]
        found["clocksequence"] = int.from_bytes(data[8:10]) & 0x3FFF
        if version == 2:
            found["id"] = int.from_bytes(data[:4])
            found["domain"] = _DOMAINS.get(data[9], f"Domain{data[9]}")
    return found


def _read_uuid(text: str) -> bytes | None:
    raw = text.encode()
    if len(raw) == 32:
        return bytes.fromhex(text) if _HEX.fullmatch(text) else None
    if len(raw) == 45 and raw[:9].lower() == b"urn:uuid:":
        raw = raw[9:]
    elif len(raw) == 38:
        # Go does not look at the braces.
        raw = raw[1:37]
    elif len(raw) != 36:
        return None
    core = decode_utf8(raw)
    return bytes.fromhex(core.replace("-", "")) if _UUID.fullmatch(core) else None
