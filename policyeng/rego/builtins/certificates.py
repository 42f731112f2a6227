"""Certificates as `crypto/x509` of Go reads, shows and verifies them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import new as new_hash
from ipaddress import IPv6Address, ip_address

from policyeng.rego.builtins.go_text import Url, UrlError, from_bytes, parse_url, to_value
from policyeng.rego.builtins.keys import (
    BOOLEAN,
    INTEGER,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    SET,
    Der,
    DerError,
    Key,
    parse_public_key,
    public_document,
    split_identifier,
    verify_ec,
    verify_ed,
    verify_rsa,
)
from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.values import Value

_RSA, _ECDSA, _ED25519 = 1, 3, 4
_PSS = (1, 2, 840, 113549, 1, 1, 10)
_SIGNATURES: dict[tuple[int, ...], int] = {
    (1, 2, 840, 113549, 1, 1, 4): 2,
    (1, 2, 840, 113549, 1, 1, 5): 3,
    (1, 3, 14, 3, 2, 29): 3,
    (1, 2, 840, 113549, 1, 1, 11): 4,
    (1, 2, 840, 113549, 1, 1, 12): 5,
    (1, 2, 840, 113549, 1, 1, 13): 6,
    (1, 2, 840, 10040, 4, 3): 7,
    (2, 16, 840, 1, 101, 3, 4, 3, 2): 8,
    (1, 2, 840, 10045, 4, 1): 9,
    (1, 2, 840, 10045, 4, 3, 2): 10,
    (1, 2, 840, 10045, 4, 3, 3): 11,
    (1, 2, 840, 10045, 4, 3, 4): 12,
    (1, 3, 101, 112): 16,
}
_MGF1 = [1, 2, 840, 113549, 1, 1, 8]
_PSS_HASHES = {(1, 32): 13, (2, 48): 14, (3, 64): 15}
#: Of the algorithms of signatures that are verified: the kind of key, and the bits of the hash.
_VERIFIED = {
    **dict(zip((4, 5, 6, 13, 14, 15), ((_RSA, size) for size in (256, 384, 512) * 2), strict=True)),
    **dict(zip((10, 11, 12), ((_ECDSA, size) for size in (256, 384, 512)), strict=True)),
    16: (_ED25519, 0),
}
_PURPOSES: dict[tuple[int, ...], int] = {
    (2, 5, 29, 37, 0): 0,
    **{(1, 3, 6, 1, 5, 5, 7, 3, arc): arc for arc in range(1, 10)},
    (1, 3, 6, 1, 4, 1, 311, 10, 3, 3): 10,
    (2, 16, 840, 1, 113730, 4, 1): 11,
    (1, 3, 6, 1, 4, 1, 311, 2, 1, 22): 12,
    (1, 3, 6, 1, 4, 1, 311, 61, 1, 1): 13,
}
ANY_PURPOSE, SERVER = 0, 1
_NAME_LISTS = {
    6: "Country",
    7: "Locality",
    8: "Province",
    9: "StreetAddress",
    10: "Organization",
    11: "OrganizationalUnit",
    17: "PostalCode",
}
_PRINTABLE = re.compile(rb"[A-Za-z0-9'-)+-/ :=?*&]*")
_NUMERIC = re.compile(rb"[0-9 ]*")
_ASCII = re.compile(rb"[\x00-\x7f]*")
_UNLIKELY_BMP = re.compile("[\ufffe\uffff\ufdd0-\ufdef\ud800-\udfff]")
_DOMAIN = re.compile(r"[!-~]*")
_ACCESS = (1, 3, 6, 1, 5, 5, 7, 1, 1)
_ACCESS_METHODS: dict[tuple[int, ...], str] = {
    (1, 3, 6, 1, 5, 5, 7, 48, 1): "OCSPServer",
    (1, 3, 6, 1, 5, 5, 7, 48, 2): "IssuingCertificateURL",
}
_EXTENSION_REQUEST = [1, 2, 840, 113549, 1, 9, 14]
_ALTERNATIVE_NAMES, _NAME_CONSTRAINTS, _POLICY_MAPPINGS, _POLICY_CONSTRAINTS = (
    [2, 5, 29, arc] for arc in (17, 30, 33, 36)
)
_CERTIFICATE_SIGN = 1 << 5
_MOST_CHECKS = 100
_LARGEST_ARC = (1 << 31) - 1
#: The members of a certificate that only an extension fills.
_EXTENDED: dict[str, Value] = {
    **dict.fromkeys(
        (
            *("AuthorityKeyId", "SubjectKeyId", "CRLDistributionPoints", "ExtKeyUsage", "UnknownExtKeyUsage"),
            *("DNSNames", "EmailAddresses", "IPAddresses", "URIs", "OCSPServer", "IssuingCertificateURL"),
            *(f"{kind}{what}" for kind in ("Permitted", "Excluded") for what in ("DNSDomains", "IPRanges")),
            *(f"{kind}{what}" for kind in ("Permitted", "Excluded") for what in ("EmailAddresses", "URIDomains")),
            *("Policies", "PolicyIdentifiers", "PolicyMappings", "UnhandledCriticalExtensions"),
            *("Extensions", "ExtraExtensions"),
        )
    ),
    **dict.fromkeys(("BasicConstraintsValid", "IsCA", "MaxPathLenZero", "PermittedDNSDomainsCritical"), False),
    **dict.fromkeys(("InhibitAnyPolicyZero", "InhibitPolicyMappingZero", "RequireExplicitPolicyZero"), False),
    **dict.fromkeys(("InhibitAnyPolicy", "InhibitPolicyMapping", "RequireExplicitPolicy", "KeyUsage"), 0),
    "MaxPathLen": 0,
}


@dataclass
class Certificate:
    """A certificate.

    Attributes:
        document: its JSON.
        uris: the URIs it is for.
    """

    document: dict[str, Value]
    signed: bytes
    signature: bytes
    key: Key | None
    not_before: datetime
    not_after: datetime
    uris: list[Url] = field(default_factory=list)

    def has_extension(self, identifier: list[int]) -> bool:
        """Return whether it has an extension."""
        return any(each["Id"] == identifier for each in self.document["Extensions"] or ())


def parse_certificates(content: bytes) -> list[Certificate]:
    """Read certificates, one after another.

    Args:
        content: DER.

    Raises:
        BuiltinError: it is not valid.
    """
    found, outer = [], Der(content)
    while outer:
        found.append(_parse_certificate(outer.read_element(SEQUENCE)))
    return found


def parse_certificate(content: bytes) -> Certificate:
    """Read a certificate.

    Raises:
        BuiltinError: it is not valid, or something follows it.
    """
    outer = Der(content)
    element = outer.read_element(SEQUENCE)
    if outer:
        raise DerError("x509: trailing data")
    return _parse_certificate(element)


def _parse_certificate(raw: bytes) -> Certificate:
    outer = Der(raw).read(SEQUENCE)
    signed = outer.read_element(SEQUENCE)
    body = Der(signed).read(SEQUENCE)
    explicit = body.read_optional(0xA0)
    version = explicit.read_integer() + 1 if explicit else 1
    if not 1 <= version <= 3:
        raise DerError("x509: invalid version")
    serial = body.read_integer()
    if serial < 0:
        raise DerError("x509: negative serial number")
    algorithm = body.read(SEQUENCE)
    if algorithm.rest != outer.read(SEQUENCE).rest:
        raise DerError("x509: inner and outer signature algorithm identifiers don't match")
    issuer = body.read_element(SEQUENCE)
    issuer_name = _parse_name(issuer)
    validity = body.read(SEQUENCE)
    not_before, not_after = validity.read_time(), validity.read_time()
    subject = body.read_element(SEQUENCE)
    subject_name = _parse_name(subject)
    key_info = body.read_element(SEQUENCE)
    key_algorithm, key = parse_public_key(key_info)
    document = {
        **_EXTENDED,
        "Raw": _encode(raw),
        "RawTBSCertificate": _encode(signed),
        "RawSubjectPublicKeyInfo": _encode(key_info),
        "RawSubject": _encode(subject),
        "RawIssuer": _encode(issuer),
        "SignatureAlgorithm": _signature_algorithm(algorithm.rest),
        "PublicKeyAlgorithm": key_algorithm,
        "PublicKey": public_document(key),
        "Version": version,
        "SerialNumber": serial,
        "Issuer": issuer_name,
        "Subject": subject_name,
        "NotBefore": _format_time(not_before),
        "NotAfter": _format_time(not_after),
    }
    certificate = Certificate(document, signed, b"", key, not_before, not_after)
    if version > 1:
        body.read_optional(0x81)
        body.read_optional(0x82)
        extensions = body.read_optional(0xA3) if version == 3 else None
        if extensions is not None:
            _read_extensions(certificate, extensions.read(SEQUENCE))
    certificate.signature = _right_align(*outer.read_bits())
    document["Signature"] = _encode(certificate.signature)
    return certificate


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _right_align(bits: bytes, padding: int) -> bytes:
    return (int.from_bytes(bits, "big") >> padding).to_bytes(len(bits), "big")


def _format_time(time: datetime) -> str:
    text = time.isoformat()
    return text.replace("+00:00", "Z") if time.tzinfo is UTC else text


def _signature_algorithm(content: bytes) -> int:
    algorithm = Der(content)
    identifier = tuple(algorithm.read_identifier())
    parameters = algorithm.rest
    if parameters:
        algorithm.read_any()
    if identifier == _PSS:
        try:
            return _pss_algorithm(parameters)
        except DerError:
            return 0
    found = _SIGNATURES.get(identifier, 0)
    return 0 if found == 16 and parameters else found


def _pss_algorithm(content: bytes) -> int:
    parameters = Der(content).read(SEQUENCE)
    hash_function = _hash_identifier(parameters.read(0xA0))
    mask = parameters.read(0xA1).read(SEQUENCE)
    if mask.read_identifier() != _MGF1 or _hash_identifier(mask) != hash_function:
        return 0
    salt = parameters.read(0xA2).read_integer()
    trailer = parameters.read_optional(0xA3)
    if (trailer and trailer.read_integer() != 1) or hash_function[:-1] != [2, 16, 840, 1, 101, 3, 4, 2]:
        return 0
    return _PSS_HASHES.get((hash_function[-1], salt), 0)


def _hash_identifier(outer: Der) -> list[int]:
    algorithm = outer.read(SEQUENCE)
    identifier = algorithm.read_identifier()
    if algorithm.rest not in {b"", b"\x05\x00"}:
        raise DerError("x509: malformed parameters")
    return identifier


def _parse_name(element: bytes) -> dict[str, Value]:
    name: dict[str, Value] = dict.fromkeys((*_NAME_LISTS.values(), "ExtraNames", "Names"))
    name |= {"CommonName": "", "SerialNumber": ""}
    sets = Der(element).read(SEQUENCE)
    while sets:
        attributes = sets.read(SET)
        while attributes:
            attribute = attributes.read(SEQUENCE)
            identifier = attribute.read_identifier()
            text = _parse_string(*attribute.read_any())
            _append(name, "Names", {"Type": identifier, "Value": text})
            if len(identifier) == 4 and identifier[:3] == [2, 5, 4]:
                if identifier[3] in _NAME_LISTS:
                    _append(name, _NAME_LISTS[identifier[3]], text)
                elif identifier[3] in {3, 5}:
                    name["CommonName" if identifier[3] == 3 else "SerialNumber"] = text
    return name


def _append(document: dict[str, Value], name: str, value: Value) -> None:
    document[name] = [*(document[name] or ()), value]


def _parse_string(tag: int, content: bytes) -> str:
    plain = {0x13: _PRINTABLE, 0x16: _ASCII, 0x12: _NUMERIC}.get(tag)
    if plain:
        if not plain.fullmatch(content):
            raise DerError("x509: invalid RDNSequence: invalid attribute value")
        return content.decode("ascii")
    if tag == 0x14:
        return content.decode("latin-1")
    try:
        if tag == 0x0C:
            return content.decode("utf-8")
        if tag == 0x1E:
            text = content.decode("utf-16-be")
            text = text[:-1] if text.endswith("\0") else text
            if not any(ord(char) > 0xFFFF for char in text) and not _UNLIKELY_BMP.search(text):
                return text
    except UnicodeDecodeError:
        pass
    raise DerError("x509: invalid RDNSequence: invalid attribute value")


def _parse_extension(outer: Der) -> tuple[list[int], bool, bytes]:
    extension = outer.read(SEQUENCE)
    identifier = extension.read_identifier()
    critical = extension.read_boolean() if extension.next_tag() == BOOLEAN else False
    return identifier, critical, extension.read(OCTET_STRING).rest


def _extension_document(identifier: list[int], critical: bool, content: bytes) -> Value:
    return {"Id": identifier, "Critical": critical, "Value": _encode(content)}


def _read_extensions(certificate: Certificate, outer: Der) -> None:
    document = certificate.document
    found: list[tuple[list[int], bool, bytes]] = []
    while outer:
        identifier, critical, content = _parse_extension(outer)
        if any(each[0] == identifier for each in found):
            raise DerError("x509: certificate contains duplicate extension")
        found.append((identifier, critical, content))
        _append(document, "Extensions", _extension_document(identifier, critical, content))
    for identifier, critical, content in found:
        if not _read_extension(certificate, identifier, critical, content) and critical:
            _append(document, "UnhandledCriticalExtensions", identifier)


def _read_extension(certificate: Certificate, identifier: list[int], critical: bool, content: bytes) -> bool:
    """Read an extension into a certificate and return whether it is understood."""
    document, value = certificate.document, Der(content)
    arc = identifier[3] if len(identifier) == 4 and identifier[:3] == [2, 5, 29] else 0
    if (tuple(identifier) == _ACCESS or arc in {14, 35}) and critical:
        raise DerError("x509: extension incorrectly marked critical")
    if tuple(identifier) == _ACCESS:
        _read_access(document, value.read(SEQUENCE))
    elif arc == 14:
        document["SubjectKeyId"] = _encode(value.read(OCTET_STRING).rest)
    elif arc == 15:
        bits, _ = value.read_bits()
        padded = bits + b"\0\0"
        document["KeyUsage"] = sum(padded[bit // 8] >> (7 - bit % 8) % 8 & 1 and 1 << bit for bit in range(9))
    elif arc == 17:
        found, certificate.uris = _parse_alternative_names(value.read(SEQUENCE))
        document.update(found)
        return any(found.values())
    elif arc == 19:
        constraints = value.read(SEQUENCE)
        document["IsCA"] = constraints.read_boolean() if constraints.next_tag() == BOOLEAN else False
        length = constraints.read_integer() if constraints.next_tag() == INTEGER else -1
        if not -1 <= length < 1 << 63:
            raise DerError("x509: invalid basic constraints")
        document.update({"MaxPathLen": length, "MaxPathLenZero": length == 0, "BasicConstraintsValid": True})
    elif arc == 30:
        return _read_name_constraints(document, value, critical)
    elif arc == 31:
        _read_distribution_points(document, value.read(SEQUENCE))
    elif arc == 32:
        _read_policies(document, value.read(SEQUENCE))
    elif arc == 33:
        mappings = value.read(SEQUENCE)
        while mappings:
            mapping = mappings.read(SEQUENCE)
            issuer, subject = (_dotted(mapping.read(OBJECT_IDENTIFIER).rest) for _ in range(2))
            _append(document, "PolicyMappings", {"IssuerDomainPolicy": issuer, "SubjectDomainPolicy": subject})
    elif arc == 35:
        inner = value.read(SEQUENCE)
        identity = inner.read_optional(0x80)
        document["AuthorityKeyId"] = _encode(identity.rest) if identity is not None else None
    elif arc == 36:
        limits = value.read(SEQUENCE)
        for tag, name in ((0x80, "RequireExplicitPolicy"), (0x81, "InhibitPolicyMapping")):
            if limits.next_tag() == tag:
                _set_number(document, name, limits.read_integer(tag))
    elif arc == 37:
        purposes = value.read(SEQUENCE)
        while purposes:
            purpose = purposes.read_identifier()
            number = _PURPOSES.get(tuple(purpose))
            name, item = ("UnknownExtKeyUsage", purpose) if number is None else ("ExtKeyUsage", number)
            _append(document, name, item)
    elif arc == 54:
        _set_number(document, "InhibitAnyPolicy", value.read_integer())
    else:
        return False
    return True


def _set_number(document: dict[str, Value], name: str, number: int) -> None:
    if not -(1 << 63) <= number < 1 << 63:
        raise DerError("x509: number of an extension is out of range")
    document.update({name: number, f"{name}Zero": number == 0})


def _read_access(document: dict[str, Value], descriptions: Der) -> None:
    while descriptions:
        description = descriptions.read(SEQUENCE)
        name = _ACCESS_METHODS.get(tuple(description.read_identifier()))
        if description.next_tag() == 0x86:
            location = description.read(0x86)
            if name:
                _append(document, name, to_value(from_bytes(location.rest)))


def _read_distribution_points(document: dict[str, Value], points: Der) -> None:
    while points:
        outer = points.read(SEQUENCE).read_optional(0xA0)
        if outer is None:
            continue
        names = outer.read(0xA0)
        while names.next_tag() == 0x86:
            _append(document, "CRLDistributionPoints", to_value(from_bytes(names.read(0x86).rest)))


def _read_policies(document: dict[str, Value], policies: Der) -> None:
    document["PolicyIdentifiers"] = []
    while policies:
        content = policies.read(SEQUENCE).read(OBJECT_IDENTIFIER).rest
        arcs, text = split_identifier(content), _dotted(content)
        if text in (document["Policies"] or ()):
            raise DerError("x509: invalid certificate policies")
        _append(document, "Policies", text)
        if max(arcs) <= _LARGEST_ARC:
            _append(document, "PolicyIdentifiers", arcs)


def _dotted(content: bytes) -> str:
    return ".".join(map(str, split_identifier(content)))


def _parse_alternative_names(names: Der) -> tuple[dict[str, Value], list[Url]]:
    found: dict[str, Value] = dict.fromkeys(("DNSNames", "EmailAddresses", "IPAddresses", "URIs"))
    urls = []
    while names:
        tag, content = names.read_any()
        if tag in {0x81, 0x82}:
            _append(found, "EmailAddresses" if tag == 0x81 else "DNSNames", _parse_ascii(content))
        elif tag == 0x86:
            try:
                url = parse_url(_parse_ascii(content))
            except UrlError as error:
                raise DerError(f"x509: cannot parse URI: {error}") from None
            if url.host and not _is_domain(url.host):
                raise DerError("x509: cannot parse URI: invalid domain")
            urls.append(url)
            _append(found, "URIs", _url_document(url))
        elif tag == 0x87:
            _append(found, "IPAddresses", _format_address(content))
    return found, urls


def _parse_ascii(content: bytes) -> str:
    if not _ASCII.fullmatch(content):
        raise DerError("x509: name is malformed")
    return content.decode("ascii")


def _is_domain(name: str, *, constraint: bool = False) -> bool:
    if not name:
        return True
    if name.endswith("."):
        return False
    if constraint and name.startswith("."):
        name = name[1:]
    labels = name.split(".")
    # Go compares the length of the first label with its place, and so lets the first be empty.
    return bool(_DOMAIN.fullmatch(name)) and all(labels)


def _url_document(url: Url) -> Value:
    return {
        "Scheme": url.scheme,
        "Opaque": to_value(url.opaque),
        "User": None if url.user is None else {},
        "Host": to_value(url.host),
        "Path": to_value(url.path),
        "RawPath": to_value(url.raw_path),
        "OmitHost": url.omit_host,
        "ForceQuery": url.force_query,
        "RawQuery": to_value(url.raw_query),
        "Fragment": to_value(url.fragment),
        "RawFragment": to_value(url.raw_fragment),
    }


def _format_address(content: bytes) -> str:
    if len(content) not in {4, 16}:
        raise DerError(f"x509: cannot parse IP address of length {len(content)}")
    address = ip_address(content)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _read_name_constraints(document: dict[str, Value], outer: Der, critical: bool) -> bool:
    constraints = outer.read(SEQUENCE)
    permitted, excluded = constraints.read_optional(0xA0), constraints.read_optional(0xA1)
    if outer or constraints or not (permitted or excluded):
        raise DerError("x509: invalid NameConstraints extension")
    document["PermittedDNSDomainsCritical"] = critical
    understood = True
    for kind, trees in (("Permitted", permitted), ("Excluded", excluded)):
        while trees:
            tag, content = trees.read(SEQUENCE).read_any()
            if tag == 0x87:
                middle = len(content) // 2
                network = {"IP": _format_address(content[:middle]), "Mask": _encode(_check_mask(content[middle:]))}
                _append(document, f"{kind}IPRanges", network)
            elif tag in {0x81, 0x82, 0x86}:
                text = _parse_ascii(content)
                if tag == 0x81 and "@" in text:
                    raise BuiltinError("name constraints for a mailbox are not supported")
                if not _is_domain(text, constraint=True) or (tag == 0x86 and _is_address(text)):
                    raise DerError(f"x509: failed to parse name constraint {text!r}")
                name = {0x81: "EmailAddresses", 0x82: "DNSDomains", 0x86: "URIDomains"}[tag]
                _append(document, f"{kind}{name}", text)
            else:
                understood = False
    return understood


def _check_mask(mask: bytes) -> bytes:
    bits = f"{int.from_bytes(mask, 'big'):b}".zfill(len(mask) * 8)
    if "01" in bits:
        raise DerError("x509: IP constraint contained invalid mask")
    return mask


def _is_address(text: str) -> bool:
    try:
        return "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


def parse_request(raw: bytes) -> Value:
    """Return the JSON of a certificate signing request.

    Raises:
        BuiltinError: it is not valid.
    """
    outer = Der(raw)
    request = Der(outer.read_element(SEQUENCE)).read(SEQUENCE)
    if outer:
        raise DerError("asn1: syntax error: trailing data")
    signed = request.read_element(SEQUENCE)
    body = Der(signed).read(SEQUENCE)
    version = body.read_integer()
    subject = body.read_element(SEQUENCE)
    key_info = body.read_element(SEQUENCE)
    algorithm = request.read(SEQUENCE)
    key_algorithm, key = parse_public_key(key_info)
    document: dict[str, Value] = {
        **dict.fromkeys(("Attributes", "Extensions", "ExtraExtensions")),
        **dict.fromkeys(("DNSNames", "EmailAddresses", "IPAddresses", "URIs")),
        "Raw": _encode(raw),
        "RawTBSCertificateRequest": _encode(signed),
        "RawSubjectPublicKeyInfo": _encode(key_info),
        "RawSubject": _encode(subject),
        "Version": version,
        "Signature": _encode(_right_align(*request.read_bits())),
        "SignatureAlgorithm": _signature_algorithm(algorithm.rest),
        "PublicKeyAlgorithm": key_algorithm,
        "PublicKey": public_document(key),
        "Subject": _parse_name(subject),
    }
    attributes = body.read(0xA0)
    while attributes:
        tag, content = attributes.read_any()
        attribute = Der(content)
        # Go drops the attributes that it cannot read, and those that are not lists of pairs.
        try:
            identifier, values = attribute.read_identifier(), attribute.read(SET)
        except DerError:
            continue
        if tag != SEQUENCE:
            continue
        if identifier == _EXTENSION_REQUEST and values:
            _read_requested(document, values.rest)
        with suppress(DerError):
            _append(document, "Attributes", {"Type": identifier, "Value": _parse_pairs(values)})
    return document


def _read_requested(document: dict[str, Value], values: bytes) -> None:
    outer = Der(values).read(SEQUENCE)
    while outer:
        identifier, critical, content = _parse_extension(outer)
        if any(each["Id"] == identifier for each in document["Extensions"] or ()):
            raise DerError("x509: certificate request contains duplicate requested extensions")
        _append(document, "Extensions", _extension_document(identifier, critical, content))
        if identifier == _ALTERNATIVE_NAMES:
            document.update(_parse_alternative_names(Der(content).read(SEQUENCE))[0])


def _parse_pairs(values: Der) -> Value:
    found = []
    while values:
        pairs, members = values.read(SEQUENCE), []
        while pairs:
            pair = pairs.read(SEQUENCE)
            identifier = pair.read_identifier()
            tag, content = pair.read_any()
            if tag == OCTET_STRING:
                value: Value = _encode(content)
            elif tag == BOOLEAN:
                value = content != b"\0"
            else:
                raise BuiltinError(f"a certificate signing request with an attribute of ASN.1 {tag} is not supported")
            members.append({"Type": identifier, "Value": value})
        found.append(members)
    return found


@dataclass
class _Verification:
    roots: list[Certificate]
    intermediates: list[Certificate]
    nanoseconds: int
    checks: int = 0


def verify_chain(
    certificates: list[Certificate], nanoseconds: int, host: str, purposes: list[int]
) -> list[Certificate] | None:
    """Return the chain from the last certificate to the first, None if there is none.

    Args:
        certificates: a root, intermediate ones, and the one that is verified.
        nanoseconds: since 1970, when they have to be valid.
        host: what it is to be for; "" for any.
        purposes: of which it has to have one.

    Raises:
        BuiltinError: it depends on what is not supported here.
    """
    *others, leaf = certificates
    verification = _Verification(_unique(others[:1]), _unique(others[1:]), nanoseconds)
    if not _is_valid(leaf, None, verification, intermediate=False) or (host and not _is_for_host(leaf, host)):
        return None
    if leaf.document["Raw"] == others[0].document["Raw"]:
        chains = [[leaf]]
    else:
        chains = list(_build_chains([leaf], verification))
    for chain in chains:
        if ANY_PURPOSE not in purposes and not _has_purpose(chain, purposes or [SERVER]):
            continue
        if any(each.has_extension(_POLICY_CONSTRAINTS) or each.has_extension(_POLICY_MAPPINGS) for each in chain[:-1]):
            raise BuiltinError("verification of certificates with policy constraints is not supported")
        if len(chain) > 1 and any(each.has_extension(_NAME_CONSTRAINTS) for each in chain):
            raise BuiltinError("verification of certificates with name constraints is not supported")
        return chain
    return None


def _unique(certificates: list[Certificate]) -> list[Certificate]:
    return list({each.document["Raw"]: each for each in reversed(certificates)}.values())[::-1]


def _is_valid(
    certificate: Certificate, chain: list[Certificate] | None, verification: _Verification, *, intermediate: bool
) -> bool:
    document = certificate.document
    if document["UnhandledCriticalExtensions"]:
        return False
    if chain and chain[-1].document["RawIssuer"] != document["RawSubject"]:
        return False
    now, second = verification.nanoseconds, 1_000_000_000
    if not _seconds(certificate.not_before) * second <= now <= _seconds(certificate.not_after) * second:
        return False
    if intermediate and not document["IsCA"]:
        return False
    longest = document["MaxPathLen"] if document["BasicConstraintsValid"] else -1
    return longest < 0 or len(chain or ()) - 1 <= longest


def _seconds(time: datetime) -> int:
    return int(time.timestamp())


def _build_chains(chain: list[Certificate], verification: _Verification) -> Iterator[list[Certificate]]:
    child = chain[-1]
    for pool, intermediate in ((verification.roots, False), (verification.intermediates, True)):
        named = [each for each in pool if each.document["RawSubject"] == child.document["RawIssuer"]]
        for parent in sorted(named, key=lambda each: _key_distance(each, child)):
            verification.checks += 1
            if verification.checks > _MOST_CHECKS:
                return
            if parent.key is None or _is_in_chain(parent, chain):
                continue
            if not _has_signed(parent, child) or not _is_valid(parent, chain, verification, intermediate=intermediate):
                continue
            if intermediate:
                yield from _build_chains([*chain, parent], verification)
            else:
                yield [*chain, parent]


def _key_distance(parent: Certificate, child: Certificate) -> int:
    own, wanted = parent.document["SubjectKeyId"] or "", child.document["AuthorityKeyId"] or ""
    if own == wanted:
        return 0
    return 2 if own and wanted else 1


def _is_in_chain(candidate: Certificate, chain: list[Certificate]) -> bool:
    names = _alternative_names(candidate)
    for each in chain:
        if any(candidate.document[name] != each.document[name] for name in ("RawSubject", "RawSubjectPublicKeyInfo")):
            continue
        other = _alternative_names(each)
        if names == other:
            return True
        if names is None or other is None:
            return False
    return False


def _alternative_names(certificate: Certificate) -> Value:
    extensions = certificate.document["Extensions"] or ()
    return next((each["Value"] for each in extensions if each["Id"] == _ALTERNATIVE_NAMES), None)


def _has_signed(parent: Certificate, child: Certificate) -> bool:
    document = parent.document
    if not document["IsCA"] and (document["Version"] == 3 or document["BasicConstraintsValid"]):
        return False
    if document["KeyUsage"] and not document["KeyUsage"] & _CERTIFICATE_SIGN:
        return False
    algorithm = child.document["SignatureAlgorithm"]
    kind, size = _VERIFIED.get(algorithm, (0, 0))
    if kind != document["PublicKeyAlgorithm"] or parent.key is None:
        return False
    if kind == _ED25519:
        return verify_ed(parent.key, child.signed, child.signature)
    digest = new_hash(f"sha{size}", child.signed).digest()
    if kind == _ECDSA:
        return verify_ec(parent.key, digest, size, child.signature)
    return verify_rsa(parent.key, digest, size, child.signature, size // 8 if algorithm >= 13 else None)


def _has_purpose(chain: list[Certificate], purposes: list[int]) -> bool:
    left = purposes
    for each in chain:
        known = each.document["ExtKeyUsage"] or []
        if (known or each.document["UnknownExtKeyUsage"]) and ANY_PURPOSE not in known:
            left = [purpose for purpose in left if purpose in known]
    return bool(left)


_LABEL = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]*")


def _is_for_host(certificate: Certificate, host: str) -> bool:
    candidate = host[1:-1] if len(host) >= 3 and host[0] == "[" and host[-1] == "]" else host
    if _is_address(candidate):
        address = ip_address(candidate)
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return str(mapped or address) in (certificate.document["IPAddresses"] or ())
    name = _lower(host)
    labels = name.removesuffix(".").split(".")
    valid = all(map(_LABEL.fullmatch, labels))
    patterns = certificate.document["DNSNames"] or ()
    return any(_matches_host(_lower(pattern), name, labels if valid else []) for pattern in patterns)


def _matches_host(pattern: str, name: str, labels: list[str]) -> bool:
    first, *others = pattern.split(".")
    if labels and all(map(_LABEL.fullmatch, others)) and (_LABEL.fullmatch(first) or (first == "*" and others)):
        return first in {"*", labels[0]} and others == labels[1:]
    return pattern == name and name not in {"", "."}


def _lower(text: str) -> str:
    return re.sub("[A-Z]+", lambda found: found[0].lower(), text)
