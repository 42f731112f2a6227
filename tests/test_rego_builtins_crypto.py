"""The builtins of hashes, certificates and keys give what OPA gives."""

from __future__ import annotations

import base64
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import (
    AttributeOID,
    AuthorityInformationAccessOID,
    ExtendedKeyUsageOID,
    NameOID,
    ObjectIdentifier,
)

from policyeng.rego.builtins import BuiltinError, load_function
from tests.rego_keys import make_keys
from tests.rego_oracle import Call, call_ours, find_differences, seeded

_KEYS = make_keys()
_SIGNERS = ("rsa", "p256", "p384", "ed")
_NAMES = NameOID
_PURPOSES = ExtendedKeyUsageOID


def _name(*attributes: tuple[ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(*attribute) for attribute in attributes])


_SUBJECTS = (
    _name((_NAMES.COMMON_NAME, "root"), (_NAMES.COUNTRY_NAME, "DE")),
    _name(
        *((_NAMES.COMMON_NAME, "leaf é"), (_NAMES.ORGANIZATION_NAME, "o1"), (_NAMES.ORGANIZATION_NAME, "o2")),
        *((_NAMES.SERIAL_NUMBER, "5"), (_NAMES.EMAIL_ADDRESS, "a@b"), (_NAMES.STREET_ADDRESS, "s")),
        *((_NAMES.STATE_OR_PROVINCE_NAME, "p"), (_NAMES.POSTAL_CODE, "8"), (_NAMES.LOCALITY_NAME, "l")),
    ),
    _name(),
)


def _uris(*texts: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(text) for text in texts])


_ADDRESSES = [x509.IPAddress(ip_address(text)) for text in ("10.0.0.1", "::1", "::ffff:10.0.0.1")]
_EXTENSIONS: tuple[tuple[x509.ExtensionType, bool], ...] = (
    (x509.SubjectAlternativeName([x509.DNSName("a.b"), *_ADDRESSES, x509.RFC822Name("a@b.c")]), False),
    (_uris("spiffe://x/y?q#f", "mailto:a@b", "http://u:p@h.x:8/a%2fb%20?#x y"), False),
    (_uris("http://u:p@h.x:8/%zz"), False),
    (x509.SubjectAlternativeName([x509.DirectoryName(_SUBJECTS[0])]), True),
    (x509.BasicConstraints(True, 0), True),
    (x509.BasicConstraints(True, None), True),
    (x509.BasicConstraints(False, None), False),
    (x509.KeyUsage(True, False, False, False, False, True, True, False, False), True),
    (x509.ExtendedKeyUsage([_PURPOSES.SERVER_AUTH, _PURPOSES.CLIENT_AUTH, ObjectIdentifier("1.2.3.4")]), False),
    (x509.SubjectKeyIdentifier(b"abc"), False),
    (x509.AuthorityKeyIdentifier(b"xyz", None, None), False),
    (x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("2.999.4294967299"), None)]), False),
    (x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("2.5.29.32.0"), None)]), False),
    (x509.CRLDistributionPoints([x509.DistributionPoint(list(_uris("http://crl")), None, None, None)]), False),
    (
        x509.AuthorityInformationAccess(
            [
                x509.AccessDescription(kind, x509.UniformResourceIdentifier("http://x"))
                for kind in (AuthorityInformationAccessOID.OCSP, AuthorityInformationAccessOID.CA_ISSUERS)
            ]
        ),
        False,
    ),
    (x509.NameConstraints([x509.DNSName("b"), x509.IPAddress(ip_network("10.0.0.0/8"))], _ADDRESSES[:0] or None), True),
    (x509.NameConstraints([x509.UniformResourceIdentifier("b.c")], [x509.RFC822Name("x.y")]), False),
    (x509.NameConstraints([x509.DirectoryName(_SUBJECTS[0])], None), True),
    (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3"), b"\x05\x00"), True),
    (x509.UnrecognizedExtension(ObjectIdentifier("2.5.29.33"), bytes.fromhex("300c300a06032a030406032a0305")), False),
    (x509.InhibitAnyPolicy(0), True),
    (x509.PolicyConstraints(0, 3), True),
)
_STARTS = (datetime(1950, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC))
_ENDS = (datetime(2049, 12, 31, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
_JUNK = (
    *("", "x", "-----BEGIN CERTIFICATE-----", "foo=", "é", None, 5, {"a"}, ["x"], True, {"a": 1}, "AAAA"),
    *("-----BEGIN X-----\nAAAA\n-----END X-----", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
)


def _issue(
    key: str,
    signer: str,
    names: tuple[x509.Name, x509.Name],
    extensions: list[tuple[x509.ExtensionType, bool]],
    times: tuple[datetime, datetime],
    algorithm: Any = None,
) -> x509.Certificate:
    builder = x509.CertificateBuilder().subject_name(names[0]).issuer_name(names[1]).serial_number(1 << 100)
    builder = builder.public_key(_KEYS[key].public_key()).not_valid_before(times[0]).not_valid_after(times[1])
    for extension, critical in extensions:
        with suppress(ValueError):  # it has one of its kind
            builder = builder.add_extension(extension, critical)
    hashed = None if signer == "ed" else algorithm or hashes.SHA256()
    return builder.sign(_KEYS[signer], hashed, ecdsa_deterministic=True if signer[0] == "p" else None)


def _draw_certificate(random: Random) -> x509.Certificate:
    extensions = random.sample(_EXTENSIONS, random.randrange(6))
    names = random.choice(_SUBJECTS), random.choice(_SUBJECTS)
    algorithm = random.choice((hashes.SHA256(), hashes.SHA384(), hashes.SHA512()))
    times = random.choice(_STARTS), random.choice(_ENDS)
    keys = [name for name in _KEYS if name != "k256"]
    return _issue(random.choice(keys), random.choice(_SIGNERS), names, extensions, times, algorithm)


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _mutate(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2))):
        changed[random.randrange(len(changed))] = random.choice((0, 0xFF, 0x30, 0x80, random.randrange(256)))
    return bytes(changed)


def _forms(content: bytes, pem: str) -> tuple[str, ...]:
    headed = pem.replace("-----\n", "-----\nA: b\n\n", 1)
    return _encode(content), pem, _encode(pem.encode()), pem.replace("\n", "\r\n"), pem * 2, headed


def test_certificates_are_read_as_opa_does(opa: Path) -> None:
    """In each form, and with bytes that are changed."""
    random = seeded(2)
    calls: list[Call] = [("crypto.x509.parse_certificates", (each,)) for each in _JUNK]
    for _ in range(200):
        certificate = _draw_certificate(random)
        content, pem = certificate.public_bytes(Encoding.DER), certificate.public_bytes(Encoding.PEM).decode()
        texts = random.choice(_forms(content, pem)), _encode(_mutate(random, content))
        calls += [("crypto.x509.parse_certificates", (text,)) for text in texts]
    assert find_differences(opa, calls) == []


def test_requests_are_read_as_opa_does(opa: Path) -> None:
    """In each form, and with bytes that are changed."""
    random = seeded(3)
    calls: list[Call] = [("crypto.x509.parse_certificate_request", (each,)) for each in _JUNK]
    for _ in range(60):
        builder = x509.CertificateSigningRequestBuilder().subject_name(random.choice(_SUBJECTS))
        for extension, critical in random.sample(_EXTENSIONS, random.randrange(3)):
            with suppress(ValueError):
                builder = builder.add_extension(extension, critical)
        builder = builder.add_attribute(AttributeOID.CHALLENGE_PASSWORD, b"word")
        request = builder.sign(_KEYS["rsa"], hashes.SHA256())
        content, pem = request.public_bytes(Encoding.DER), request.public_bytes(Encoding.PEM).decode()
        texts = random.choice(_forms(content, pem)), _encode(_mutate(random, content))
        calls += [("crypto.x509.parse_certificate_request", (text,)) for text in texts]
    assert find_differences(opa, calls) == []


def _private_forms() -> list[tuple[str, str]]:
    found = []
    for name, key in _KEYS.items():
        for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
            with suppress(ValueError):
                pem, content = (
                    key.private_bytes(encoding, form, NoEncryption()) for encoding in (Encoding.PEM, Encoding.DER)
                )
                text = pem.decode()
                wrong = (text.replace("RSA PRIVATE", "EC PRIVATE"), text.replace("N PRIVATE", "N RSA PRIVATE"))
                found += [(name, each) for each in (*_forms(content, text), *wrong)]
    return found


@pytest.mark.slow
def test_keys_are_read_as_opa_does(opa: Path) -> None:
    """Alone, as JWKs, and with certificates for them and for others."""
    random = seeded(4)
    alone = ("crypto.parse_private_keys", "crypto.x509.parse_rsa_private_key")
    calls: list[Call] = [(name, (each,)) for name in alone for each in _JUNK]
    calls += [("crypto.x509.parse_keypair", pair) for each in _JUNK for pair in ((each, "x"), ("", each), (each, 5))]
    for name, text in _private_forms():
        calls += [(builtin, (text,)) for builtin in alone]
        for other in {name, random.choice(list(_KEYS))} - {"k256"}:
            certificate = _issue(other, "rsa", _SUBJECTS[:2], [], (_STARTS[1], _ENDS[0]))
            forms = _forms(certificate.public_bytes(Encoding.DER), certificate.public_bytes(Encoding.PEM).decode())
            calls.append(("crypto.x509.parse_keypair", (random.choice(forms), text)))
    assert find_differences(opa, calls) == []


def test_hashes_are_those_of_opa(opa: Path) -> None:
    """Of text, and of other values."""
    texts = (*_JUNK, "x" * 200, "\0", "\U0001f600")
    calls: list[Call] = [(f"crypto.{name}", (each,)) for name in ("md5", "sha1", "sha256") for each in texts]
    names = ("md5", "sha1", "sha256", "sha512", "equal")
    calls += [(f"crypto.hmac.{name}", pair) for name in names for each in texts for pair in ((each, "x"), ("x", each))]
    calls.append(("crypto.hmac.equal", ("é", "é")))
    assert find_differences(opa, calls) == []


_HOSTS = (
    *("a.b", "A.B", "x.c.d", "c.d", "y.x.c.d", "*.c.d", "10.0.0.1", "[10.0.0.1]", "::1", "::ffff:10.0.0.1", '"a.b"'),
    *("a.b.", "x y", "a_x.b-", "", "*", "[::1]", "q.b", ".b"),
)
_LEAF_NAMES = [*map(x509.DNSName, ("a.b", "*.c.d", "*", "*.b", "A_x.B-", "x y")), *_ADDRESSES[:2]]
_SECOND = 10**9
_MOMENTS = (
    *[1700000000 * _SECOND] * 6,
    1577836800 * _SECOND,
    1577836800 * _SECOND - 1,
    2208988800 * _SECOND + 1,
    0,
    -1,
)


def _draw_chain(random: Random) -> str:
    length = random.randrange(1, 5)
    keys = [random.choice(("rsa", "p256", "p384", "ed")) for _ in range(length)]
    chain = []
    for place in range(length):
        issuer, leaf = max(place - 1, 0), place == length - 1
        limits = random.choice((*[x509.BasicConstraints(True, None)] * 8, *(each for each, _ in _EXTENSIONS[4:7])))
        usages = random.sample((_PURPOSES.SERVER_AUTH, _PURPOSES.CLIENT_AUTH, _PURPOSES.ANY_EXTENDED_KEY_USAGE), 2)
        drawn = (
            (0.3 if leaf else 0.95, limits),
            (0.4, x509.KeyUsage(True, False, False, False, False, random.random() < 0.8, True, False, False)),
            (0.3, x509.ExtendedKeyUsage(usages[: random.randrange(1, 3)])),
            (0.8 if leaf else 0, x509.SubjectAlternativeName(random.sample(_LEAF_NAMES, 3))),
            (0.3, x509.SubjectKeyIdentifier(bytes([place]))),
            (0.3, x509.AuthorityKeyIdentifier(bytes([issuer]), None, None)),
            (0.03, _EXTENSIONS[18][0]),
        )
        extensions = [(each, False) for chance, each in drawn if random.random() < chance]
        signer = keys[issuer] if random.random() < 0.96 else "p521"
        names = [_name((_NAMES.COMMON_NAME, f"n{number}")) for number in (place, issuer)]
        end = datetime(2040, 1, 1, tzinfo=UTC) if random.random() < 0.96 else datetime(2022, 1, 1, tzinfo=UTC)
        times = datetime(2020, 1, 1, tzinfo=UTC), end
        chain.append(_issue(keys[place], signer, (names[0], names[1]), extensions, times))
    middle = chain[1:-1]
    random.shuffle(middle)
    chain[1:-1] = middle
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in chain)


def test_chains_are_verified_as_opa_does(opa: Path) -> None:
    """At several times, for several hosts and purposes."""
    random = seeded(5)
    name = "crypto.x509.parse_and_verify_certificates_with_options"
    calls: list[Call] = [(name, (each, {"CurrentTime": 5})) for each in _JUNK]
    calls += [(name, ("", each)) for each in _JUNK]
    usages: tuple[Any, ...] = ([], ["KeyUsageAny"], ["KeyUsageClientAuth"], ["KeyUsageServerAuth", 5], ["x"], 5)
    for _ in range(400):
        options: dict[str, Any] = {"CurrentTime": random.choice(_MOMENTS)}
        if random.random() < 0.4:
            options["DNSName"] = random.choice(_HOSTS)
        if random.random() < 0.4:
            options["KeyUsages"] = random.choice(usages)
        if random.random() < 0.05:
            wrong = random.choice(("MaxConstraintComparisons", "other", "CurrentTime", "DNSName"))
            options[wrong] = random.choice((5, "x", 1.5, 5.0, None))
        calls.append((name, (_draw_chain(random), options)))
    assert find_differences(opa, calls) == []
    outcomes = [call_ours(*call) for call in calls]
    verdicts = [outcome.value[0] for outcome in outcomes if outcome.kind == "array"]
    assert min(verdicts.count(True), verdicts.count(False)) > 30


def test_verification_needs_a_time() -> None:
    """There is no clock."""
    certificate = _issue("p256", "p256", (_SUBJECTS[0], _SUBJECTS[0]), [], (_STARTS[1], _ENDS[0]))
    text = certificate.public_bytes(Encoding.PEM).decode() * 2
    with pytest.raises(BuiltinError, match="needs CurrentTime"):
        load_function("crypto.x509.parse_and_verify_certificates_with_options")(text, {})


@pytest.mark.parametrize("place", [15, 21])
def test_limits_that_are_not_supported_are_refused(place: int) -> None:
    """A chain under constraints of names or policies is neither good nor bad."""
    limits, root = [(x509.BasicConstraints(True, None), True), _EXTENSIONS[place]], _SUBJECTS[0]
    times = _STARTS[1], _ENDS[0]
    chain = [
        _issue("p256", "p256", (root, root), limits[:1], times),
        _issue("p384", "p256", (_SUBJECTS[1], root), limits, times),
        _issue("ed", "p384", (_name((_NAMES.COMMON_NAME, "x")), _SUBJECTS[1]), [], times),
    ]
    text = "".join(each.public_bytes(Encoding.PEM).decode() for each in chain)
    with pytest.raises(BuiltinError, match="constraints is not supported"):
        load_function("crypto.x509.parse_and_verify_certificates_with_options")(text, {"CurrentTime": _MOMENTS[0]})
