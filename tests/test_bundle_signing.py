"""Signatures of bundles: what is valid, and everything that must not be."""

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
from policyeng.bundle.files import open_origins
from policyeng.bundle.signature_policy import SIGNATURES, Signature
from policyeng.bundle.signing import ALGORITHMS, SigningKey, file_hash, signed, verify
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


def signed_with(key: Keys, payload: JsonObject, algorithm: str = "ES256", **header: object) -> str:
    """A token over claims, made with PyJWT alone."""
    return jwt.encode(payload, key.private.read_bytes(), algorithm, headers=header or None)


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


@pytest.mark.parametrize(("alter", "message"), ALTERATIONS)
def test_every_change_of_a_signed_bundle_is_refused(
    p256: Keys, alter: Callable[[dict[PurePosixPath, bytes]], object], message: str
) -> None:
    """Altered, added, removed, renamed; the file is named."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}
    alter(files)

    with pytest.raises(BundleError, match=message):
        verify(files, "b.tar.gz", Verification(p256.public))


RESIGN = "; get the bundle from its author again, or sign it anew if the change is meant"
KNOWN = "is not accepted; sign it with one of SHA-224, SHA-256, SHA-384, SHA-512, SHA-512-224, SHA-512-256"
MESSAGES: list[tuple[dict[str, bytes | None], str]] = [
    ({"area/a/a.rego": b"x"}, f"b: area/a/a.rego: the file was altered after signing{RESIGN}"),
    ({"area/a/a.rego": b"x", "x/data.json": b"{}"}, f"b: area/a/a.rego: the file was altered after signing{RESIGN}"),
    ({"z": b"", "b": b"", "y": b""}, f"b: b: the file was added after signing{RESIGN}"),
    ({"area/a/a.rego": None, "x/data.json": None}, f"b: area/a/a.rego: the file is missing{RESIGN}"),
    ({"x/data.json": b"\x00"}, "b/x/data.json:1:1: not valid YAML (the character"),
]


@pytest.mark.parametrize(("changes", "message"), MESSAGES)
def test_the_first_file_that_differs_is_named(p256: Keys, changes: dict[str, bytes | None], message: str) -> None:
    """With the bundle, in the order of the paths, whatever their order in the bundle."""
    files = dict(reversed({**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}.items()))
    for name, content in changes.items():
        files.pop(PurePosixPath(name), None)
        files.update({} if content is None else {PurePosixPath(name): content})

    with pytest.raises(BundleError) as refusal:
        verify(files, "b", Verification(p256.public))
    assert str(refusal.value).startswith(message)


def test_the_first_file_is_that_of_the_paths_and_not_of_the_signature(p256: Keys) -> None:
    """Others may list the files in another order."""
    files = with_token(FILES, signed_with(p256, claims(dict(sorted(FILES.items(), reverse=True)))))
    altered = {**files, POLICY_PATH: b"x", PurePosixPath("x/data.json"): b"{}"}

    with pytest.raises(BundleError, match=f"^b: {POLICY_PATH}: the file was altered"):
        verify(altered, "b", Verification(p256.public))


def test_a_bundle_without_files_is_verified_too(p256: Keys) -> None:
    """That all files are gone is a change as any other."""
    with pytest.raises(BundleError, match="the file is missing"):
        verify({SIGNATURES: signed(FILES, SigningKey.read(p256.private))}, "b", Verification(p256.public))
    assert verify({SIGNATURES: signed({}, SigningKey.read(p256.private))}, "b", Verification(p256.public))


def test_a_signature_covers_everything_but_itself(p256: Keys) -> None:
    """A bundle that is signed again gets the same signature; the file is JSON that people can read."""
    key = SigningKey.read(p256.private)
    first = signed(FILES, key)

    assert signed({**FILES, SIGNATURES: first}, key) == first
    assert first.startswith(b'{\n  "signatures": [\n    "ey')
    assert first.endswith(b"]\n}\n")


def test_the_id_of_the_key_is_in_the_header_and_in_the_claims(p256: Keys) -> None:
    """OPA reads the one, older versions of it the other; without an id there is neither."""
    for key_id, in_header, in_claims in (("k1", {"kid": "k1"}, {"keyid": "k1"}), ("", {}, {})):
        [token] = json.loads(signed(FILES, SigningKey.read(p256.private, key_id=key_id)))["signatures"]

        assert jwt.get_unverified_header(token) == {"alg": "ES256", "typ": "JWT", **in_header}
        assert jwt.decode(token, options={"verify_signature": False}) == {
            **claims(dict(sorted(FILES.items()))),
            **in_claims,
        }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_hash_algorithm_is_accepted_in_letters_of_any_case(p256: Keys, algorithm: str) -> None:
    """The same files with a hash that is too short are altered."""
    listed = [
        {"name": str(path), "hash": file_hash(path, content, algorithm, "").upper(), "algorithm": algorithm}
        for path, content in FILES.items()
    ]

    assert verify(with_token(FILES, signed_with(p256, {"files": listed})), "b", Verification(p256.public))
    listed[0]["hash"] = listed[0]["hash"][:-1]
    with pytest.raises(BundleError, match="altered after signing"):
        verify(with_token(FILES, signed_with(p256, {"files": listed})), "b", Verification(p256.public))


@pytest.mark.parametrize("plugin", ["", "_default", None])
def test_the_plugins_of_opa_itself_are_accepted(p256: Keys, plugin: str | None) -> None:
    """They are the form that is read here."""
    files = with_token(FILES, signed_with(p256, claims(FILES)), plugin=plugin)

    assert verify(files, "b", Verification(p256.public))


def test_the_form_of_a_data_document_is_free(p256: Keys) -> None:
    """OPA signs the value of JSON, so spaces and the order of keys may change on the way."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}

    assert verify({**files, PurePosixPath("x/data.json"): b'{"a":1.50,"b":1}'}, "b", Verification(p256.public))


def test_an_unsigned_bundle_is_refused(p256: Keys) -> None:
    """Taking the signature away is no way around it."""
    with pytest.raises(BundleError) as refusal:
        verify(FILES, "b", Verification(p256.public))

    assert str(refusal.value) == (
        "b: the bundle is not signed; sign an archive with `policyeng bundle build --signing-key FILE`, a directory "
        "with `bundle sign`"
    )


def test_another_key_is_refused(p256: Keys, rsa: Keys, tmp_path: Path) -> None:
    """A right signature of somebody else is no signature."""
    files = {**FILES, SIGNATURES: signed(FILES, SigningKey.read(p256.private))}

    for public, message in (
        (
            keys(tmp_path, "p256").public,
            "the signature does not hold (signature verification failed); get the bundle from its author again, or "
            "name the key that it was signed with",
        ),
        (
            rsa.public,
            "the signature is not made with `RS256`; set `--verification-algorithm`, if it should be",
        ),
    ):
        with pytest.raises(BundleError) as refusal:
            verify(files, "b", Verification(public))
        assert str(refusal.value) == f"b/.signatures.json: {message}"


def test_the_token_does_not_choose_its_algorithm(p256: Keys, rsa: Keys) -> None:
    """`none`, and a MAC keyed with the public key, are the known ways to forge."""
    payload = claims(FILES)
    header = {"alg": "HS256", "typ": "JWT"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, payload)]
    import hashlib
    import hmac

    mac = hmac.new(rsa.public.read_bytes(), b".".join(parts), hashlib.sha256).digest()
    forged = b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()

    for token in (jwt.encode(payload, "", "none"), forged):
        for pair in (p256, rsa):
            with pytest.raises(BundleError, match=r"not made with|does not hold"):
                verify(with_token(FILES, token), "b", Verification(pair.public))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"{}", "b.tar.gz/.signatures.json: exactly one signature is expected; sign the bundle anew$"),
        (b"[]", "exactly one signature"),
        (b'{"signatures": []}', "exactly one signature"),
        (b'{"signatures": [1]}', "exactly one signature"),
        (b'{"signatures": ["a.b.c", "a.b.c"]}', "exactly one signature"),
        (
            b'{"signatures": ["a.b.c"], "plugin": "mine"}',
            "of the plugin `mine`; sign it with OPA's default, or with `policyeng bundle build`$",
        ),
        (b'{"signatures": ["x"]}', "does not hold"),
        (b'{"signatures": ["a.b.c"]}', "does not hold"),
        (b'{"signatures": ["\xc3\xa4.b.c"]}', "does not hold"),
    ],
)
def test_a_signature_file_that_is_none_is_refused(p256: Keys, content: bytes, message: str) -> None:
    """Whatever its content, it is refused with its place."""
    with pytest.raises(BundleError, match=message) as refusal:
        verify({**FILES, SIGNATURES: content}, "b.tar.gz", Verification(p256.public))

    assert ".signatures.json" in str(refusal.value)


@pytest.mark.parametrize(
    ("payload", "refused"),
    [
        ({}, f"^b: .signatures.json: the signature lists no files{RESIGN}$"),
        ({"files": "all"}, "lists no files"),
        ({"files": [1]}, "lists no files"),
        ({"files": [{"name": 1, "hash": "x", "algorithm": "SHA-256"}]}, "lists no files"),
        ({"files": [{"name": "a", "hash": "x"}]}, "algorithm `` is not accepted"),
        ({"files": [{"name": "a", "hash": "x", "algorithm": "MD5"}]}, f"^b: a: the hash algorithm `MD5` {KNOWN}$"),
        ({"files": [{"name": "a", "hash": "x", "algorithm": "SHA-1"}]}, "`SHA-1` is not accepted"),
        (
            {"files": [{"name": "a", "hash": "", "algorithm": "SHA-256"}] * 2},
            f"^b: a: the signature lists the file twice{RESIGN}$",
        ),
        ({"files": [{"name": str(path), "hash": 1, "algorithm": "SHA-256"} for path in FILES]}, "altered after"),
        ({"files": []}, "added after signing"),
    ],
)
def test_claims_without_content_are_refused(p256: Keys, payload: JsonObject, refused: str) -> None:
    """A right signature over nothing, over weak hashes or over a file twice."""
    with pytest.raises(BundleError, match=refused):
        verify(with_token(FILES, signed_with(p256, payload)), "b", Verification(p256.public))


def test_times_are_kept(p256: Keys) -> None:
    """An expired signature is refused, and one that is not yet valid; one that lasts states until when."""
    with pytest.raises(BundleError, match=r"^b/\.signatures\.json: the signature has expired; get a newer bundle$"):
        verify(with_token(FILES, signed_with(p256, claims(FILES, exp=1))), "b", Verification(p256.public))
    for more in ({"exp": 1}, {"nbf": 99_999_999_999}, {"exp": "never"}):
        with pytest.raises(BundleError, match=r"has expired|does not hold"):
            verify(with_token(FILES, signed_with(p256, claims(FILES, **more))), "b", Verification(p256.public))

    until = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
    verified = verify(with_token(FILES, signed_with(p256, claims(FILES, exp=until))), "b", Verification(p256.public))
    assert verified.expires == "2100-01-01T00:00:00+00:00"
    for last, expected in ((253_402_300_799, "9999-12-31T23:59:59+00:00"), (253_402_300_800, "")):
        verified = verify(with_token(FILES, signed_with(p256, claims(FILES, exp=last))), "b", Verification(p256.public))
        assert verified.expires == expected
    for more in ({"exp": 10**17}, {"aud": "x", "iss": "y"}, {"sub": 1}, {"jti": 1}):
        assert verify(with_token(FILES, _signed_as_it_is(p256, claims(FILES, **more))), "b", Verification(p256.public))


def test_key_and_scope_are_those_of_the_configuration(p256: Keys) -> None:
    """A configured key id has to be named; the scope has to be the same, none being one, as in OPA."""
    plain = with_token(FILES, signed_with(p256, claims(FILES)))
    named = with_token(FILES, signed_with(p256, claims(FILES, scope="write"), kid="k1"))
    old = with_token(FILES, signed_with(p256, claims(FILES, keyid="k1")))

    assert verify(old, "b", Verification(p256.public, key_id="k1")).key_id == "k1"
    assert verify(named, "b", Verification(p256.public, key_id="k1", scope="write")).scope == "write"
    assert verify(named, "b", Verification(p256.public, scope="write")).key_id == "k1"
    for files, wanted, message in (
        (
            plain,
            Verification(p256.public, key_id="k1"),
            "has no key, but `k1` is configured; set `--verification-key-id` to",
        ),
        (
            named,
            Verification(p256.public, key_id="k2", scope="write"),
            "has the key `k1`, but `k2` is configured; set `--verification-key-id` to",
        ),
        (
            named,
            Verification(p256.public),
            "has the scope `write`, but none is configured; set `--verification-scope` to",
        ),
        (
            plain,
            Verification(p256.public, scope="write"),
            "has no scope, but `write` is configured; set `--verification-scope` to",
        ),
    ):
        with pytest.raises(BundleError) as refusal:
            verify(files, "b", wanted)
        assert str(refusal.value) == f"b/.signatures.json: the signature {message} the expected value"


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


@pytest.mark.attack
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
    with pytest.raises(BundleError, match="is not signed"):  # also next to an archive that is signed
        load_bundle(
            packed(tmp_path / "b.tar.gz", {**POLICY, str(SIGNATURES): _signature_of(POLICY, p256)}),
            policies,
            verification=Verification(p256.public),
        )
    assert not (tmp_path / "ran").exists()


def _signed_as_it_is(key: Keys, payload: JsonObject) -> str:
    """A token over claims that PyJWT would not make."""
    return jwt.PyJWS().encode(json.dumps(payload).encode(), key.private.read_bytes(), "ES256")


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
        assert str(refusal.value) == (
            f"{place}: the signature is not a regular file; remove it, and sign the directory with `policyeng bundle "
            "sign`"
        )


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


CONTRADICTION = (
    "^signatures are required, and unsigned directories are allowed; remove `require_signature` or "
    "`allow_unsigned_directory`$"
)
NO_KEY = "^signatures are to be verified, and no key is configured; name the public key with `--verification-key FILE`$"


def test_to_require_signatures_and_to_allow_none_is_a_contradiction(p256: Keys) -> None:
    """A flag must not weaken what a configuration file requires."""
    with pytest.raises(UsageError, match=CONTRADICTION):
        load_bundle(verification=Verification(p256.public, required=True, allow_unsigned_directory=True))


def test_the_directory_before_every_name_is_that_of_opa_sign(p256: Keys) -> None:
    """`opa sign --bundle DIR` writes DIR before each name; one before some names only is refused."""
    named = {PurePosixPath("some/dir") / path: content for path, content in FILES.items()}
    assert verify(with_token(FILES, signed_with(p256, claims(named))), "d", Verification(p256.public))

    for less in ("x", "some/dirx"):  # not the name of a directory
        other = {PurePosixPath(f"{less}{path}"): content for path, content in FILES.items()}
        with pytest.raises(BundleError, match="added after signing"):
            verify(with_token(FILES, signed_with(p256, claims(other))), "d", Verification(p256.public))

    partly = {**named, POLICY_PATH: named.pop(PurePosixPath("some/dir") / POLICY_PATH)}
    with pytest.raises(BundleError, match="added after signing"):
        verify(with_token(FILES, signed_with(p256, claims(partly))), "d", Verification(p256.public))


def test_a_missing_file_is_not_taken_for_the_directory_before_the_names(p256: Keys) -> None:
    """Of two signed files of which the name of one ends with that of the other, both have to be there."""
    longer = PurePosixPath("area") / POLICY_PATH
    both = {POLICY_PATH: b"package a", longer: b"package b"}
    files = with_token({POLICY_PATH: b"package a"}, signed_with(p256, claims(both)))

    with pytest.raises(BundleError, match=f"b: {longer}: the file is missing"):
        verify(files, "b", Verification(p256.public))


def test_an_origin_has_the_signature_that_was_verified(p256: Keys, tmp_path: Path) -> None:
    """Reports show it; a signature that nothing verified is only there."""
    mine: dict[str, str | bytes] = {str(path): content for path, content in FILES.items()}
    files: dict[str, str | bytes] = {**mine, str(SIGNATURES): signed(FILES, SigningKey.read(p256.private))}
    archive = packed(tmp_path / "b.tar.gz", files)
    directory = write(tmp_path / "d", POLICY)
    verification = Verification(p256.public, allow_unsigned_directory=True)

    for path, how, expected in (
        (archive, verification, (True, Signature("ES256"))),
        (archive, None, (True, None)),
        (packed(tmp_path / "u.tar.gz", mine), None, (False, None)),
        (directory, verification, (False, None)),
        (directory, None, (False, None)),
    ):
        origin = open_origins([path], how)[0]
        assert (origin.signed, origin.signature) == expected

    (directory / ".signatures.json").write_bytes(_signature_of(POLICY, p256))
    assert open_origins([directory])[0].signed
    assert open_origins([directory], verification)[0].signature == Signature("ES256")


def test_required_without_a_key_is_a_wrong_configuration(tmp_path: Path) -> None:
    """Even for the built-in policies, which are trusted as installed: the next bundle would be used unverified."""
    with pytest.raises(UsageError, match=NO_KEY):
        load_bundle(verification=Verification(required=True))
    with pytest.raises(UsageError, match="no key is configured"):
        load_bundle(write(tmp_path, POLICY), verification=Verification(required=True))


def test_only_a_file_named_as_opa_names_it_is_a_signature(p256: Keys) -> None:
    """Under another name it is a file as any other."""
    files = {**FILES, PurePosixPath(".signatures.json"): signed(FILES, SigningKey.read(p256.private))}

    assert verify(files, "b", Verification(p256.public))


def test_the_built_in_policies_are_trusted_as_installed(p256: Keys) -> None:
    """They carry no signature, and are as sound as the installed package is."""
    assert load_bundle(verification=Verification(p256.public, required=True)).policies
