"""Archives and signatures against the real OPA: what we write it takes, and what it writes we take."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from policyeng.bundle import Bundle, Verification, load_bundle
from policyeng.bundle.archive import archive_bytes, archive_files
from policyeng.bundle.assembling import bundle_of
from policyeng.bundle.files import open_origins
from policyeng.bundle.signing import SigningKey, file_hash
from policyeng.errors import BundleError
from tests.archives import POLICY, Keys, keys, packed, unpacked
from tests.bundles import write
from tests.test_bundle_building import findings

KINDS = [("p256", "ES256"), ("rsa", "RS256"), ("p384", "ES384"), ("p521", "ES512"), ("rsa", "PS256")]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Keys]:
    """Keys by kind."""
    folder = tmp_path_factory.mktemp("keys")
    return {kind: keys(folder, kind) for kind in {kind for kind, _ in KINDS}}


def run(opa: Path, *arguments: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """OPA with arguments; what it prints is the whole of the outcome."""
    command = [str(opa), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def signed(path: Path, key: Keys, algorithm: str, *origins: Path) -> Path:
    """A signed archive that we build."""
    opened = open_origins(origins)
    files = archive_files(bundle_of(opened), opened, "r1", SigningKey.read(key.private, algorithm))
    path.write_bytes(archive_bytes(files))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "algorithm"), KINDS)
def test_opa_takes_our_signed_archive_and_refuses_it_altered(
    opa: Path, pairs: dict[str, Keys], tmp_path: Path, kind: str, algorithm: str
) -> None:
    """Every built-in policy and document: `opa build` and `opa run` verify it, and miss no change."""
    signed(tmp_path / "b.tar.gz", pairs[kind], algorithm)
    options = ["--verification-key", pairs[kind].public, "--signing-alg", algorithm]

    build = run(opa, "build", "--bundle", "b.tar.gz", *options, "--output", "out.tar.gz", cwd=tmp_path)
    assert (build.returncode, build.stdout + build.stderr) == (0, "")
    result = run(
        opa, "run", "--bundle", "b.tar.gz", *options, "-f", "json", cwd=tmp_path, stdin="data.facts.sources[_]\n"
    )
    assert result.returncode == 0
    assert "error" not in result.stdout + result.stderr

    files = dict(unpacked(tmp_path / "b.tar.gz"))
    for name in ("network/public_network_access/public_network_access.rego", "sku/series_approval/series_approval.py"):
        packed(tmp_path / "altered.tar.gz", {**files, name: files[name] + b"\n# more\n"})
        for command in (("build", "--output", "out.tar.gz"), ("run",)):
            refused = run(opa, *command, "--bundle", "altered.tar.gz", *options, cwd=tmp_path)
            assert refused.returncode != 0
            assert "digest mismatch" in refused.stdout + refused.stderr


@pytest.mark.slow
def test_opa_reads_our_archive_strictly(opa: Path, bundle: Bundle, tmp_path: Path) -> None:
    """`opa check --strict`, `opa inspect` and `opa eval`; the manifest states revision and digest."""
    origins = open_origins([])
    (tmp_path / "b.tar.gz").write_bytes(archive_bytes(archive_files(bundle_of(origins), origins)))

    checked = run(opa, "check", "--strict", "--bundle", "b.tar.gz", cwd=tmp_path)
    inspected = run(opa, "inspect", "--format", "json", "b.tar.gz", cwd=tmp_path)
    query = "data.network.public_network_access.deny"
    result = run(
        opa,
        "eval",
        "--bundle",
        "b.tar.gz",
        "--stdin-input",
        "--format",
        "json",
        query,
        cwd=tmp_path,
        stdin='{"resource": {"properties": {}}}',
    )

    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    manifest = json.loads(inspected.stdout)["manifest"]
    assert manifest["metadata"]["policyeng"]["digest"] == bundle.digest
    assert (
        json.loads(result.stdout)["result"][0]["expressions"][0]["value"][0]["path"]
        == "/properties/publicNetworkAccess"
    )


@pytest.mark.slow
def test_what_opa_builds_decides_as_the_directory_does(opa: Path, root: Path, tmp_path: Path) -> None:
    """Named relatively or absolutely; OPA leaves Python out, and everything in Rego is the same."""
    ours = load_bundle(root / "policies")
    expected = [
        finding
        for finding in findings(ours, root)
        if {p.id: p for p in ours.policies}[finding.policy].language == "rego"
    ]
    for number, name in enumerate(("policies", root / "policies")):
        path = tmp_path / f"{number}.tar.gz"
        assert run(opa, "build", "--bundle", name, "--output", path, cwd=root).returncode == 0
        read = load_bundle(path)

        assert (read.modules, read.data, read.revision) == (ours.modules, ours.data, ours.revision)
        assert list(findings(read, root)) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--optimize", "1"), "dropped their headers"),
        (("--target", "wasm"), "WebAssembly"),
        (("--target", "plan"), "a plan"),
    ],
)
def test_what_opa_compiles_is_refused_with_a_remedy(
    opa: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    """Optimized and compiled archives no longer contain the policies as they were written."""
    write(tmp_path / "d", POLICY)
    build = ("build", "--bundle", "d", *options, "--entrypoint", "area/a/deny", "--output", "b.tar.gz")
    assert run(opa, *build, cwd=tmp_path).returncode == 0

    with pytest.raises(BundleError, match=message) as refusal:
        load_bundle(tmp_path / "b.tar.gz")
    assert refusal.value.remedy


@pytest.mark.parametrize(("kind", "algorithm"), KINDS)
def test_we_take_what_opa_signs_and_refuse_it_altered(
    opa: Path, pairs: dict[str, Keys], tmp_path: Path, kind: str, algorithm: str
) -> None:
    """`opa sign` for a directory and for what is packed of it, `opa build --signing-key` for an archive."""
    key, verification = pairs[kind], Verification(pairs[kind].public, algorithm, required=True)
    options = ["--signing-key", key.private, "--signing-alg", algorithm]
    root = write(
        tmp_path / "d", {**POLICY, "x/data.json": '{"b": 1.0, "a": "<ä>"}', ".manifest": '{"roots": ["area", "x"]}'}
    )
    assert run(opa, "sign", "--bundle", "d", *options, "--output-file-path", root, cwd=tmp_path).returncode == 0
    assert load_bundle(root, verification=verification).policies

    (root / ".signatures.json").unlink()  # OPA would sign it under a wrong name
    assert run(opa, "sign", "--bundle", ".", *options, cwd=root).returncode == 0
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    packed(tmp_path / "packed.tar.gz", dict(files))
    assert (
        load_bundle(root, verification=verification).digest
        == load_bundle(tmp_path / "packed.tar.gz", verification=verification).digest
    )

    build = ("build", "--bundle", "packed.tar.gz", *options, "--verification-key", key.public, "--output", "b.tar.gz")
    ran = run(opa, *build, cwd=tmp_path)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
    assert load_bundle(tmp_path / "b.tar.gz", verification=verification).policies

    for name in ("area/a/a.rego", "x/data.json"):
        packed(tmp_path / "packed.tar.gz", {**files, name: files[name].replace(b"1", b"2")})
        with pytest.raises(BundleError, match="altered after signing"):
            load_bundle(tmp_path / "packed.tar.gz", verification=verification)


def test_our_hashes_are_those_of_opa(opa: Path, pairs: dict[str, Keys], tmp_path: Path) -> None:
    """Numbers as they are written, strings as Go escapes them, YAML as Go turns it into JSON, bytes as they are."""
    documents = {
        "a/data.json": r'{"n": [1.0, 1e3, 1E+2, -0, -0.0, 12345678901234567890123, 0.1e-7], "z": {}, "a": []}',
        "b/data.json": r'{"\uffff": 1, "s": ["\u2028\u2029<>&\/\u0001\b\f\n\r\t\"\\\u007f\ud83d\ude00", "\ud800x"]}',
        "c/data.yaml": "f: [1.5, 1.0, 1e21, 1e-7, 1.25e-7, 100000.0, 0.000001, -2]\ns: ['yes', \"x\", null, true]\n",
        "d/data.yml": "t: 2020-01-01\nv: 1.2.3\n12: x\n",
        "e/data.json": "[1, 2]",
        "f/data.json": "\ufeff{}",
        "g/x.json": '{ "kept" : 1.0 }',
        "h/h.rego": "package h\r\n",
        ".manifest": '{"metadata": {"b": 1.10, "a": "x"}, "revision": "r"}',
    }
    write(tmp_path / "d", {})
    for name, text in documents.items():
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_bytes(text.encode())
    ran = run(opa, "sign", "--bundle", ".", "--signing-key", pairs["rsa"].private, cwd=tmp_path / "d")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    token = json.loads((tmp_path / "d" / ".signatures.json").read_text())["signatures"][0]
    listed = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["files"]

    theirs = {entry["name"]: entry["hash"] for entry in listed}

    assert theirs == {
        name: file_hash(PurePosixPath(name), text.encode(), "SHA-256", name) for name, text in documents.items()
    }
