"""Sign bundles and verify their signatures, in OPA's form: `.signatures.json` with one JSON Web Token over all files.

Source: openpolicyagent.org/docs/management-bundles, "Signing", and OPA's v1/bundle/sign.go and verify.go. The algorithm
comes from the configuration or from the type of the key, never from the token.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import orjson

from policyeng.bundle.document_parsing import bundle_json, bundle_yaml
from policyeng.bundle.files import DATA_NAMES
from policyeng.bundle.manifest import MANIFEST
from policyeng.bundle.signature_policy import SIGNATURES, Signature, Verification
from policyeng.bundle.signing_keys import SigningKey, VerificationKey
from policyeng.errors import BundleError
from policyeng.models import JsonObject

#: OPA's names of the algorithms that are accepted, and hashlib's; MD5 and SHA-1 are left out, they no longer bind.
ALGORITHMS = {
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512-224": "sha512_224",
    "SHA-512-256": "sha512_256",
}

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Number(NamedTuple):
    """A number as its document writes it."""

    text: str


def file_hash(path: PurePosixPath, content: bytes, algorithm: str, place: str) -> str:
    """Return the hash of a file, as hexadecimal; `algorithm` is a key of `ALGORITHMS`.

    Raises:
        BundleError: a document is neither JSON nor YAML.
    """
    if path.name in DATA_NAMES or path.name == MANIFEST.name:
        content = "".join(_canonical(_document(content, place))).encode()
    return hashlib.new(ALGORITHMS[algorithm], content, usedforsecurity=True).hexdigest()


def _document(content: bytes, place: str) -> object:
    try:
        text = content.decode("utf-8-sig")
        try:
            return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)
        except ValueError:
            return bundle_yaml(text, place)
    except (UnicodeDecodeError, RecursionError) as error:
        raise BundleError("the document cannot be read", place=(place,), remedy="write JSON in UTF-8") from error


def _no_constant(name: str) -> object:
    raise ValueError(f"`{name}` is not JSON")


def _canonical(value: object) -> Iterator[str]:
    if isinstance(value, _Number):
        yield value.text
    elif isinstance(value, dict):
        yield "{"
        for position, key in enumerate(sorted(value)):
            yield f"{',' if position else ''}{_quoted(key)}:"
            yield from _canonical(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for position, element in enumerate(value):
            if position:
                yield ","
            yield from _canonical(element)
        yield "]"
    elif isinstance(value, str):
        yield _quoted(value)
    elif isinstance(value, float):
        yield _as_go(value)
    else:
        yield json.dumps(value)


def _quoted(text: str) -> str:
    """Return a string as Go writes it in JSON: line separators escaped, and what is no character replaced."""
    sound = text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
    return json.dumps(sound, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _as_go(value: float) -> str:
    """Return a number of a YAML document as Go writes it in JSON: shortest digits, exponent only if large."""
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        from decimal import Decimal

        digits = format(Decimal(repr(value)), "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    mantissa, _, exponent = repr(value).partition("e")
    sign, digits = exponent[:1], exponent[1:].lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{sign}{digits.rjust(2, '0') if sign == '+' else digits}"


_LAST = 253_402_300_800  # the first second of the year 10000, which `datetime` does not have
_RESIGN = "get the bundle from its author again, or sign it anew if the change is meant"


def verify(files: Mapping[PurePosixPath, bytes], place: str, verification: Verification) -> Signature:
    """Verify the signature among the files of a bundle, and every file by it.

    Raises:
        BundleError: there is no signature, it is not the key's, has expired or is for another key or scope, or a file
            was altered, added or removed; names the file.
        UsageError: the key or the algorithm of the configuration cannot be used.
    """
    key = VerificationKey.read(verification.require_key(), verification.algorithm)
    if SIGNATURES not in files:
        remedy = "sign an archive with `policyeng bundle build --signing-key FILE`, a directory with `bundle sign`"
        if Path(place).is_dir():
            remedy = "sign it with `policyeng bundle sign --signing-key FILE`, or add `--allow-unsigned-directory`"
        raise BundleError("the bundle is not signed", place=(place,), remedy=remedy)
    token = _token(files[SIGNATURES], f"{place}/{SIGNATURES}")
    header, claims = key.claims(token, f"{place}/{SIGNATURES}")
    signature = _signature(header, claims, key.algorithm)
    _require_identity(signature, verification, f"{place}/{SIGNATURES}")
    _require_files(_list_signed_files(claims, place), files, place)
    return signature


def signed(files: Mapping[PurePosixPath, bytes], key: SigningKey) -> bytes:
    """Return the `.signatures.json` over the files of a bundle; the same files and key give the same bytes."""
    listed = [
        {"name": str(path), "hash": file_hash(path, content, "SHA-256", str(path)), "algorithm": "SHA-256"}
        for path, content in sorted(files.items())
        if path != SIGNATURES
    ]
    claims: JsonObject = {"files": listed, **({"keyid": key.key_id} if key.key_id else {})}
    return orjson.dumps({"signatures": [key.token(orjson.dumps(claims))]}, option=orjson.OPT_INDENT_2) + b"\n"


def _token(content: bytes, place: str) -> str:
    document = bundle_json(content, place)
    tokens = document.get("signatures") if isinstance(document, dict) else None
    if not isinstance(tokens, list) or len(tokens) != 1 or not isinstance(tokens[0], str):
        raise BundleError("exactly one signature is expected", place=(place,), remedy="sign the bundle anew")
    if isinstance(document, dict) and document.get("plugin") not in (None, "", "_default"):
        remedy = "sign it with OPA's default, or with `policyeng bundle build`"
        raise BundleError(f"the signature is of the plugin `{document['plugin']}`", place=(place,), remedy=remedy)
    return tokens[0]


def _signature(header: JsonObject, claims: JsonObject, algorithm: str) -> Signature:
    until = claims.get("exp")
    expires = datetime.fromtimestamp(until, UTC).isoformat() if isinstance(until, int) and until < _LAST else ""
    key_id = header.get("kid") or claims.get("keyid") or ""
    return Signature(algorithm, str(key_id), str(claims.get("scope") or ""), expires)


def _require_identity(signature: Signature, verification: Verification, place: str) -> None:
    pairs = (("key", signature.key_id, verification.key_id), ("scope", signature.scope, verification.scope))
    for what, stated, wanted in pairs:
        if stated == wanted or (what == "key" and not wanted):
            continue
        actual = f"the signature has the {what} `{stated}`" if stated else f"the signature has no {what}"
        configured = f"`{wanted}` is configured" if wanted else "none is configured"
        option = "`--verification-key-id`" if what == "key" else "`--verification-scope`"
        raise BundleError(f"{actual}, but {configured}", place=(place,), remedy=f"set {option} to the expected value")


def _list_signed_files(claims: JsonObject, place: str) -> dict[str, tuple[str, str]]:
    """Return the signed files: hash and algorithm by name."""
    entries = claims.get("files")
    listed: dict[str, tuple[str, str]] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        name, hexadecimal, algorithm = _fields(entry)
        if not name:
            raise BundleError("the signature lists no files", place=(place, str(SIGNATURES)), remedy=_RESIGN)
        if algorithm not in ALGORITHMS:
            known = f"sign it with one of {', '.join(ALGORITHMS)}"
            raise BundleError(f"the hash algorithm `{algorithm}` is not accepted", place=(place, name), remedy=known)
        if name in listed:
            raise BundleError("the signature lists the file twice", place=(place, name), remedy=_RESIGN)
        listed[name] = (hexadecimal.lower(), algorithm)
    return listed


def _fields(entry: object) -> tuple[str, str, str]:
    """Name, hash and algorithm of a signed file; empty where they are no text."""
    members = entry if isinstance(entry, dict) else {}
    name, hexadecimal, algorithm = (members.get(key) for key in ("name", "hash", "algorithm"))
    return (
        name if isinstance(name, str) else "",
        hexadecimal if isinstance(hexadecimal, str) else "",
        algorithm if isinstance(algorithm, str) else "",
    )


def _require_files(listed: Mapping[str, tuple[str, str]], files: Mapping[PurePosixPath, bytes], place: str) -> None:
    """Every file is signed and every signed file is there, with the content that was signed."""
    present = {str(path): path for path in files if path != SIGNATURES}
    prefix = _prefix(listed, present)
    names = {name.removeprefix(prefix): entry for name, entry in listed.items()}
    for what, there, wanted in (("was added after signing", present, names), ("is missing", names, present)):
        if surplus := sorted(set(there) - set(wanted)):
            raise BundleError(f"the file {what}", place=(place, surplus[0]), remedy=_RESIGN)
    for name, (hexadecimal, algorithm) in sorted(names.items()):
        path = present[name]
        if file_hash(path, files[path], algorithm, f"{place}/{name}") != hexadecimal:
            raise BundleError("the file was altered after signing", place=(place, name), remedy=_RESIGN)


def _prefix(listed: Iterable[str], present: Iterable[str]) -> str:
    """Return what `opa sign --bundle DIR` puts before the name of each file of a directory: the directory."""
    names, paths = set(listed), set(present)
    first = min(paths, default="")
    for name in sorted(names):
        prefix = name.removesuffix(first)
        if prefix.endswith("/") and names == {prefix + path for path in paths}:
            return prefix
    return ""
