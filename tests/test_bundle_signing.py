"""Signatures of bundles: what holds, and everything that must not."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import jwt
import pytest

from policyeng.bundle import Bundle, Verification, load_bundle
from policyeng.bundle.file_hash import file_hash
from policyeng.bundle.signing import signed, verify
from policyeng.bundle.signing_keys import SigningKey
from policyeng.bundle.verification import SIGNATURES, Signature
from policyeng.errors import BundleError, UsageError
from policyeng.models import JsonObject
from tests.archives import POLICY, Keys, keys, packed
from tests.bundles import write

FILES = {PurePosixPath(name): text.encode() for name, text in {**POLICY, "x/data.json": '{"b": 1, "a": 1.50}'}.items()}
POLICY_PATH = PurePosixPath("area/a/a.rego")


@pytest.fixture(scope="module")
def p256(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A pair of keys on P-256."""
    return keys(tmp_path_factory.mktemp("keys"), "p256")


@pytest.fixture(scope="module")
def rsa(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A pair of RSA keys."""
    return keys(tmp_path_factory.mktemp("keys"), "rsa")


def claims(files: dict[PurePosixPath, bytes], **more: object) -> JsonObject:
    """Right claims over files, and more."""
    listed = [
        {"name": str(path), "hash": file_hash(path, content, "SHA-256", ""), "algorithm": "SHA-256"}
        for path, content in files.items()
    ]
    return {"files": listed, **more}


def with_token(files: dict[PurePosixPath, bytes], *tokens: str, **more: object) -> dict[PurePosixPath, bytes]:
    """Files with a `.signatures.json`."""
    return {**files, SIGNATURES: json.dumps({"signatures": tokens, **more}).encode()}


def signed_with(key: Keys, said: JsonObject, algorithm: str = "ES256", **header: object) -> str:
    """A token over claims, made with PyJWT alone."""
    return jwt.encode(said, key.private.read_bytes(), algorithm, headers=header or None)


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_what_an_rsa_key_signs_it_verifies(rsa: Keys, algorithm: str) -> None:
    """Every algorithm of the type, and only the one that is configured."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(rsa.private, algorithm))}

    assert verify(files, "b", Verification(rsa.public, algorithm)) == Signature(algorithm)
    other = "RS256" if algorithm == "PS512" else "PS512"
    with pytest.raises(BundleError, match=f"not made with `{other}`"):
        verify(files, "b", Verification(rsa.public, other))


@pytest.mark.parametrize("kind", ["p256", "p384", "p521"])
def test_signing_twice_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    """ECDSA too: its nonces follow from key and content, so an archive is built the same twice."""
    pair = keys(tmp_path, kind)
    key = SigningKey.read(pair.private, key_id="k1")

    first = signed(FILES, key)

    assert first == signed(dict(reversed(FILES.items())), key)
    assert verify({**FILES, SIGNATURES: first}, "b", Verification(pair.public)).key_id == "k1"
    assert first != signed({**FILES, POLICY_PATH: b"x"}, key)


ALTERATIONS: list[tuple[Callable[[dict[PurePosixPath, bytes]], object], str]] = [
    (lambda files: files.update({POLICY_PATH: files[POLICY_PATH] + b"\n"}), "altered after signing"),
    (lambda files: files.update({PurePosixPath("x/data.json"): b'{"b": 1, "a": 1.5}'}), "altered after signing"),
    (lambda files: files.update({PurePosixPath("x/data.json"): b'{"b": 1'}), "altered after signing|not valid"),
    (lambda files: files.update({PurePosixPath("area/a/b.rego"): b"package b"}), "added after signing"),
    (lambda files: files.update({PurePosixPath("area/a/p.py"): b"1/0"}), "added after signing"),
    (lambda files: files.update({PurePosixPath("README"): b""}), "added after signing"),
    (lambda files: files.update({PurePosixPath("x/.signatures.json"): b"{}"}), "added after signing"),
    (lambda files: files.pop(POLICY_PATH), "is missing"),
    (lambda files: files.update({PurePosixPath("area/A.rego"): files.pop(POLICY_PATH)}), "added after signing"),
]


@pytest.mark.parametrize(("alter", "said"), ALTERATIONS)
def test_every_change_of_a_signed_bundle_is_refused(
    p256: Keys, alter: Callable[[dict[PurePosixPath, bytes]], object], said: str
) -> None:
    """Altered, added, removed, renamed; the file is named."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}
    alter(files)

    with pytest.raises(BundleError, match=said):
        verify(files, "b.tar.gz", Verification(p256.public))


def test_the_form_of_a_data_document_is_free(p256: Keys) -> None:
    """OPA signs the value of JSON, so spaces and the order of keys may change on the way."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}

    assert verify({**files, PurePosixPath("x/data.json"): b'{"a":1.50,"b":1}'}, "b", Verification(p256.public))


def test_an_unsigned_bundle_is_refused(p256: Keys) -> None:
    """Taking the signature away is no way around it."""
    with pytest.raises(BundleError, match="is not signed"):
        verify(FILES, "b", Verification(p256.public))


def test_another_key_is_refused(p256: Keys, rsa: Keys, tmp_path: Path) -> None:
    """A right signature of somebody else is no signature."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}

    with pytest.raises(BundleError, match="does not hold"):
        verify(files, "b", Verification(keys(tmp_path, "p256").public))
    with pytest.raises(BundleError, match="not made with `RS256`"):
        verify(files, "b", Verification(rsa.public))


def test_the_token_does_not_choose_its_algorithm(p256: Keys, rsa: Keys) -> None:
    """`none`, and a MAC keyed with the public key, are the known ways to forge."""
    said = claims(FILES)
    header = {"alg": "HS256", "typ": "JWT"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, said)]
    import hashlib
    import hmac

    mac = hmac.new(rsa.public.read_bytes(), b".".join(parts), hashlib.sha256).digest()
    forged = b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()

    for token in (jwt.encode(said, "", "none"), forged):
        for pair in (p256, rsa):
            with pytest.raises(BundleError, match=r"not made with|does not hold"):
                verify(with_token(FILES, token), "b", Verification(pair.public))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"{}", "exactly one signature"),
        (b"[]", "exactly one signature"),
        (b'{"signatures": []}', "exactly one signature"),
        (b'{"signatures": [1]}', "exactly one signature"),
        (b'{"signatures": ["a.b.c", "a.b.c"]}', "exactly one signature"),
        (b'{"signatures": ["a.b.c"], "plugin": "mine"}', "of the plugin `mine`"),
        (b'{"signatures": ["x"]}', "does not hold"),
        (b'{"signatures": ["a.b.c"]}', "does not hold"),
        (b'{"signatures": ["\xc3\xa4.b.c"]}', "does not hold"),
    ],
)
def test_a_signature_file_that_is_none_is_refused(p256: Keys, content: bytes, said: str) -> None:
    """Whatever stands there, it is refused with its place."""
    with pytest.raises(BundleError, match=said) as refusal:
        verify({**FILES, SIGNATURES: content}, "b.tar.gz", Verification(p256.public))

    assert ".signatures.json" in str(refusal.value)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({}, "lists no files"),
        ({"files": "all"}, "lists no files"),
        ({"files": [1]}, "lists no files"),
        ({"files": [{"name": 1, "hash": "x", "algorithm": "SHA-256"}]}, "lists no files"),
        ({"files": [{"name": "a", "hash": "x"}]}, "algorithm `` is not accepted"),
        ({"files": [{"name": "a", "hash": "x", "algorithm": "MD5"}]}, "`MD5` is not accepted"),
        ({"files": [{"name": "a", "hash": "x", "algorithm": "SHA-1"}]}, "`SHA-1` is not accepted"),
        ({"files": [{"name": "a", "hash": "", "algorithm": "SHA-256"}] * 2}, "lists the file twice"),
        ({"files": []}, "added after signing"),
    ],
)
def test_claims_that_say_nothing_are_refused(p256: Keys, said: JsonObject, refused: str) -> None:
    """A right signature over nothing, over weak hashes or over a file twice."""
    with pytest.raises(BundleError, match=refused):
        verify(with_token(FILES, signed_with(p256, said)), "b", Verification(p256.public))


def test_times_are_kept(p256: Keys) -> None:
    """An expired signature is refused, and one that is not yet valid; one that lasts says until when."""
    for more in ({"exp": 1}, {"nbf": 99_999_999_999}, {"exp": "never"}):
        with pytest.raises(BundleError, match=r"has expired|does not hold"):
            verify(with_token(FILES, signed_with(p256, claims(FILES, **more))), "b", Verification(p256.public))

    until = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
    held = verify(with_token(FILES, signed_with(p256, claims(FILES, exp=until))), "b", Verification(p256.public))
    assert held.expires == "2100-01-01T00:00:00+00:00"
    for last, expected in ((253_402_300_799, "9999-12-31T23:59:59+00:00"), (253_402_300_800, "")):
        held = verify(with_token(FILES, signed_with(p256, claims(FILES, exp=last))), "b", Verification(p256.public))
        assert held.expires == expected
    for more in ({"exp": 10**17}, {"aud": "x", "iss": "y"}):
        assert verify(with_token(FILES, signed_with(p256, claims(FILES, **more))), "b", Verification(p256.public))


def test_key_and_scope_are_those_of_the_configuration(p256: Keys) -> None:
    """A configured key id has to be named; the scope has to be the same, none being one, as in OPA."""
    plain = with_token(FILES, signed_with(p256, claims(FILES)))
    named = with_token(FILES, signed_with(p256, claims(FILES, scope="write"), kid="k1"))
    old = with_token(FILES, signed_with(p256, claims(FILES, keyid="k1")))

    assert verify(old, "b", Verification(p256.public, key_id="k1")).key_id == "k1"
    assert verify(named, "b", Verification(p256.public, key_id="k1", scope="write")).scope == "write"
    assert verify(named, "b", Verification(p256.public, scope="write")).key_id == "k1"
    for files, wanted, said in (
        (plain, Verification(p256.public, key_id="k1"), "names no key, and `k1` is configured"),
        (named, Verification(p256.public, key_id="k2", scope="write"), "names the key `k1`, and `k2`"),
        (named, Verification(p256.public), "names the scope `write`, and none is configured"),
        (plain, Verification(p256.public, scope="write"), "names no scope, and `write` is configured"),
    ):
        with pytest.raises(BundleError, match=said):
            verify(files, "b", wanted)


def test_every_archive_has_to_be_signed_once_a_key_is_configured(p256: Keys, tmp_path: Path) -> None:
    """Signed ones load, altered and unsigned ones do not; Python in them never runs before that."""
    mine = {str(path): content for path, content in FILES.items()}
    files: dict[str, str | bytes] = {**mine, str(SIGNATURES): signed(FILES, SigningKey.read(p256.private))}
    verification = Verification(p256.public)
    trap: dict[str, str | bytes] = {
        "area/p/p.py": f"from policyeng import policy\nopen({str(tmp_path / 'ran')!r}, 'w')"
    }

    assert isinstance(load_bundle(packed(tmp_path / "b.tar.gz", files), verification=verification), Bundle)
    with pytest.raises(BundleError, match="added after signing"):
        load_bundle(packed(tmp_path / "b.tar.gz", {**files, **trap}), verification=verification)
    with pytest.raises(BundleError, match="is not signed"):
        load_bundle(packed(tmp_path / "b.tar.gz", {**mine, **trap}), verification=verification)
    assert not (tmp_path / "ran").exists()


def test_a_directory_has_to_be_signed_unless_that_is_allowed(p256: Keys, tmp_path: Path) -> None:
    """A signature that is there has to be valid, also where none is needed."""
    root = write(tmp_path / "d", POLICY)
    unsigned = {PurePosixPath(name): text.encode() for name, text in POLICY.items()}
    lenient = Verification(p256.public, allow_unsigned_directory=True)
    assert load_bundle(root, verification=lenient).policies
    for strict in (Verification(p256.public), Verification(p256.public, required=True)):
        with pytest.raises(BundleError, match="is not signed") as refusal:
            load_bundle(root, verification=strict)
        assert "--allow-unsigned-directory" in str(refusal.value)

    (root / ".signatures.json").write_bytes(signed(unsigned, SigningKey.read(p256.private)))
    assert load_bundle(root, verification=Verification(p256.public, required=True)).policies

    write(root, {"area/a/notes.txt": "mine"})
    for verification in (Verification(p256.public), lenient):
        with pytest.raises(BundleError, match="added after signing"):
            load_bundle(root, verification=verification)
    assert load_bundle(root).policies


def test_a_directory_in_the_place_of_an_archive_is_not_read_unsigned(p256: Keys, tmp_path: Path) -> None:
    """Who replaces the file chooses its form, so the form must not decide whether a signature is needed."""
    trap = f"from policyeng import policy\nopen({str(tmp_path / 'ran')!r}, 'w')"
    policies = write(tmp_path / "policies.tar.gz", {**POLICY, "area/p/p.py": trap})
    link = tmp_path / "linked.tar.gz"
    link.symlink_to(policies)

    for path in (policies, link):
        with pytest.raises(BundleError, match="is not signed"):
            load_bundle(path, verification=Verification(p256.public))
    with pytest.raises(BundleError, match="is not signed"):  # also beside an archive that is signed
        load_bundle(
            packed(tmp_path / "b.tar.gz", {**POLICY, str(SIGNATURES): _signature_of(POLICY, p256)}),
            policies,
            verification=Verification(p256.public),
        )
    assert not (tmp_path / "ran").exists()


def _signature_of(files: dict[str, str], pair: Keys) -> bytes:
    contents = {PurePosixPath(name): text.encode() for name, text in files.items()}
    return signed(contents, SigningKey.read(pair.private))


@pytest.mark.parametrize("kind", ["folder", "link to a device", "link to a file", "broken link", "pipe"])
def test_a_signature_that_is_not_a_regular_file_is_an_error(p256: Keys, tmp_path: Path, kind: str) -> None:
    """Such an entry is neither a signature nor the lack of one; without a key it is refused, too."""
    root = write(tmp_path / "d", POLICY)
    place = root / ".signatures.json"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        (tmp_path / "kept.json").write_bytes(_signature_of(POLICY, p256))
        targets = {"link to a device": Path("/dev/null"), "link to a file": tmp_path / "kept.json"}
        place.symlink_to(targets.get(kind, tmp_path / "nothing"))

    lenient = Verification(p256.public, allow_unsigned_directory=True)
    for verification in (Verification(p256.public), lenient, None):
        with pytest.raises(BundleError, match="is not a regular file") as refusal:
            load_bundle(root, verification=verification)
        assert str(place) in str(refusal.value)


@pytest.mark.parametrize(
    "files",
    [
        {"policy/deny.rego": "package main\nimport rego.v1\ndeny contains `no`\n"},
        {"t/template.yaml": "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\n"},
        {"data.json": '{"a": 1}', **POLICY},
    ],
)
def test_policies_of_every_form_have_to_be_signed(p256: Keys, tmp_path: Path, files: dict[str, str]) -> None:
    """Policies of Conftest and Gatekeeper and data documents, too; nothing is parsed before."""
    with pytest.raises(BundleError, match="is not signed"):
        load_bundle(write(tmp_path, files), verification=Verification(p256.public))


def test_to_require_signatures_and_to_allow_none_is_a_contradiction(p256: Keys) -> None:
    """A flag must not weaken what a configuration file requires."""
    with pytest.raises(UsageError, match="signatures are required, and unsigned directories are allowed"):
        load_bundle(verification=Verification(p256.public, required=True, allow_unsigned_directory=True))


def test_the_directory_before_every_name_is_that_of_opa_sign(p256: Keys) -> None:
    """`opa sign --bundle DIR` writes DIR before each name; one that stands before some only is no such thing."""
    named = {PurePosixPath("some/dir") / path: content for path, content in FILES.items()}
    assert verify(with_token(FILES, signed_with(p256, claims(named))), "d", Verification(p256.public))

    partly = {**named, POLICY_PATH: named.pop(PurePosixPath("some/dir") / POLICY_PATH)}
    with pytest.raises(BundleError, match="added after signing"):
        verify(with_token(FILES, signed_with(p256, claims(partly))), "d", Verification(p256.public))


def test_required_without_a_key_is_a_wrong_configuration(tmp_path: Path) -> None:
    """Even for the built-in policies, which are trusted as installed: the next bundle would be judged unverified."""
    with pytest.raises(UsageError, match="no key is configured"):
        load_bundle(verification=Verification(required=True))
    with pytest.raises(UsageError, match="no key is configured"):
        load_bundle(write(tmp_path, POLICY), verification=Verification(required=True))


def test_the_built_in_policies_are_trusted_as_installed(p256: Keys) -> None:
    """They carry no signature, and are as sound as the installed package is."""
    assert load_bundle(verification=Verification(p256.public, required=True)).policies
