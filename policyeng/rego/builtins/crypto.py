"""The builtins of certificates and keys."""

from __future__ import annotations

import base64
from contextlib import suppress

from policyeng.rego.builtins.certificates import (
    Certificate,
    parse_certificate,
    parse_certificates,
    parse_request,
    verify_chain,
)
from policyeng.rego.builtins.go_text import decode_base64, from_bytes, read_pem, to_value
from policyeng.rego.builtins.keys import (
    INTEGER,
    OCTET_STRING,
    SEQUENCE,
    Key,
    OtherKey,
    parse_private_key,
    private_document,
    public_document,
    to_jwk,
)
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_object, check_string
from policyeng.rego.numbers import to_integer
from policyeng.rego.values import Value, is_number, members, ordered_keys

_BEGIN = b"-----BEGIN"
_CERTIFICATE = "CERTIFICATE"
_REQUEST = "CERTIFICATE REQUEST"
#: The tag of the second member of each kind of private key.
_PRIVATE_KEYS = {"RSA PRIVATE KEY": INTEGER, "PRIVATE KEY": SEQUENCE, "EC PRIVATE KEY": OCTET_STRING}
_PURPOSES = {
    f"KeyUsage{name}": number
    for number, name in enumerate(
        (
            *("Any", "ServerAuth", "ClientAuth", "CodeSigning", "EmailProtection", "IPSECEndSystem", "IPSECTunnel"),
            *("IPSECUser", "TimeStamping", "OCSPSigning", "MicrosoftServerGatedCrypto", "NetscapeServerGatedCrypto"),
            *("MicrosoftCommercialCodeSigning", "MicrosoftKernelCodeSigning"),
        )
    )
}


@builtin("crypto.x509.parse_certificates")
def parse_certificate_list(text: Value) -> Value:
    """Return the certificates of PEM or of base64."""
    return [
        {**each.document, "URIStrings": [to_value(str(uri)) for uri in each.uris] or None}
        for each in _certificates(check_string(1, text))
    ]


@builtin("crypto.x509.parse_and_verify_certificates_with_options")
def verify_certificates(text: Value, options: Value) -> Value:
    """Return whether the last of some certificates is signed by the first, and the certificates between them."""
    check_string(1, text)
    check_object(2, options)
    try:
        certificates = _certificates(text)
    except BuiltinError:
        return [False, []]
    time, host, purposes = _verification_options(options)
    if len(certificates) < 2:
        return [False, []]
    if time is None:
        raise BuiltinError("crypto.x509.parse_and_verify_certificates_with_options needs CurrentTime: pass it")
    chain = verify_chain(certificates, time, host, purposes)
    return [False, []] if chain is None else [True, [each.document for each in chain]]


def _verification_options(options: dict[Value, Value]) -> tuple[int | None, str, list[int]]:
    time, host, purposes = None, "", []
    for key in ordered_keys(options):
        value = options[key]
        if key == "DNSName":
            if type(value) is not str:
                raise BuiltinError("'DNSName' should be a string")
            host = value.strip('"')
        elif key in {"CurrentTime", "MaxConstraintComparisons"}:
            number = to_integer(value) if is_number(value) else None
            if number is None or not -(1 << 63) <= number < 1 << 63:
                raise BuiltinError(f"'{key}' should be a number")
            time = number if key == "CurrentTime" else time
        elif key == "KeyUsages":
            purposes = _purposes(value)
        elif type(key) is str:
            raise BuiltinError("invalid key option")
    return time, host, purposes


def _purposes(value: Value) -> list[int]:
    if type(value) not in {list, set}:
        raise BuiltinError("'KeyUsages' should be an Array or Set")
    items = members(value) if type(value) is set else value
    names = [each.strip('"') for each in items if type(each) is str]
    invalid = [name for name in names if name not in _PURPOSES]
    if invalid:
        raise BuiltinError(f"invalid entries for 'KeyUsages' found: [{' '.join(invalid)}]")
    return [_PURPOSES[name] for name in names]


def _certificates(text: str) -> list[Certificate]:
    content = text.encode()
    if not content.startswith(_BEGIN):
        content = decode_base64(text)
    if not content.startswith(_BEGIN):
        return parse_certificates(content)
    found = b""
    while content:
        block, content = read_pem(content)
        if block is None:
            break
        if block.label != _CERTIFICATE:
            raise BuiltinError(f"PEM block type is '{to_value(block.label)}', expected {_CERTIFICATE}")
        found += block.content
    return parse_certificates(found)


@builtin("crypto.x509.parse_certificate_request")
def parse_signing_request(text: Value) -> Value:
    """Return a certificate signing request of PEM or of base64."""
    content = check_string(1, text).encode()
    if not content.startswith(b"-----BEGIN CERTIFICATE REQUEST-----"):
        content = decode_base64(text)
    block, _ = read_pem(content)
    if block is not None and block.label != _REQUEST:
        raise BuiltinError("invalid PEM-encoded certificate signing request")
    return parse_request(content if block is None else block.content)


@builtin("crypto.parse_private_keys")
def parse_private_keys(text: Value) -> Value:
    """Return the private keys of PEM or of PEM in base64."""
    if not check_string(1, text):
        return None
    return [private_document(key) for key in _private_keys(text.encode())]


@builtin("crypto.x509.parse_rsa_private_key")
def parse_private_jwk(text: Value) -> Value:
    """Return the first private key of PEM or of PEM in base64 as a JWK."""
    content = check_string(1, text).encode()
    if not content:
        raise BuiltinError("input PEM data was empty")
    keys = _private_keys(content if content.startswith(_BEGIN) else decode_base64(text))
    return to_jwk(keys[0]) if keys else None


def _private_keys(content: bytes) -> list[Key]:
    with suppress(BuiltinError):
        content = decode_base64(from_bytes(content))
    found = []
    while content:
        block, content = read_pem(content)
        if block is None:
            break
        if block.label in _PRIVATE_KEYS:
            found.append(parse_private_key(block.content, _PRIVATE_KEYS[block.label]))
    return found


@builtin("crypto.x509.parse_keypair")
def parse_key_pair(certificate: Value, key: Value) -> Value:
    """Return a certificate with its chain and its private key, each of PEM or of base64."""
    check_string(1, certificate)
    check_string(1, key)
    content, secret = _pem(certificate), _pem(key)
    chain = []
    if content.startswith(_BEGIN + b" "):
        while content:
            block, content = read_pem(content)
            if block is None:
                break
            if block.label == _CERTIFICATE:
                chain.append(block.content)
    else:
        chain.append(content)
    if not chain:
        raise BuiltinError("tls: failed to find certificate PEM data in certificate input")
    if secret.startswith(_BEGIN):
        secret = _private_block(secret)
    leaf = parse_certificate(chain[0])
    private = parse_private_key(secret)
    if (
        isinstance(private, OtherKey)
        or type(private) is not type(leaf.key)
        or public_document(private) != leaf.document["PublicKey"]
    ):
        raise BuiltinError("tls: private key does not match public key")
    return {
        "Certificate": [base64.b64encode(each).decode() for each in chain],
        "Leaf": leaf.document,
        "PrivateKey": private_document(private),
        **dict.fromkeys(("OCSPStaple", "SignedCertificateTimestamps", "SupportedSignatureAlgorithms")),
    }


def _pem(text: str) -> bytes:
    content = text.encode()
    return content if content.startswith(_BEGIN + b" ") else decode_base64(text)


def _private_block(content: bytes) -> bytes:
    while content:
        block, content = read_pem(content)
        if block is None:
            break
        if f" {block.label}".endswith(" PRIVATE KEY"):
            return block.content
    raise BuiltinError("tls: failed to find PEM block with a private key in key input")
