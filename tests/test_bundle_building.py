"""Building archives: the same bytes for the same input, and everything that decides in them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.archive import archive_bytes, archive_files
from policyeng.bundle.assembling import bundle_of
from policyeng.bundle.files import open_origins
from policyeng.bundle.signing import SigningKey
from policyeng.errors import BundleError
from policyeng.models import Finding
from policyeng.sources import load_snapshot
from tests.archives import POLICY, keys, packed, unpacked
from tests.bundles import deny_when, rego, write

PYTHON = """
from policyeng import Denial, policy

@policy(id="T-P-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def always(input):
    yield Denial(msg="m")
"""


def built(path: Path, *origins: Path, revision: str = "") -> Path:
    """An archive of directories, or of the built-in policies."""
    opened = open_origins(origins)
    path.write_bytes(archive_bytes(archive_files(bundle_of(opened), opened, revision)))
    return path


def manifest(path: Path) -> dict[str, object]:
    """The manifest of an archive."""
    read: dict[str, object] = json.loads(unpacked(path)[".manifest"])
    return read


def findings(bundle: Bundle, root: Path) -> Sequence[Finding]:
    """The findings of a bundle for the samples."""
    snapshot = load_snapshot(root / "samples" / "workspaces" / "regulated.json")
    return evaluate(bundle, snapshot, as_of=datetime(2026, 6, 1, tzinfo=UTC)).findings


@pytest.mark.slow
def test_the_archive_of_the_built_in_policies_is_the_bundle(bundle: Bundle, root: Path, tmp_path: Path) -> None:
    """Policies in Rego and Python, modules, data, digest, revision and findings are equal."""
    read = load_bundle(built(tmp_path / "b.tar.gz"))

    for part in ("digest", "revision", "modules", "data"):
        assert getattr(read, part) == getattr(bundle, part), part
    assert [policy.header for policy in read.policies] == [policy.header for policy in bundle.policies]
    assert findings(read, root) == findings(bundle, root)
    assert {policy.language for policy in read.policies} == {"rego", "python"}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Wherever and whenever it lies, and whoever owns it."""
    first, second = (write(tmp_path / name, {**POLICY, "x/data.json": "{}", "p/p.py": PYTHON}) for name in ("1", "2"))
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    one = built(tmp_path / "one.tar.gz", first).read_bytes()

    assert one == built(tmp_path / "two.tar.gz", second).read_bytes()
    assert one[4:10] == bytes(4) + b"\x02\xff"
    write(second, {"x/data.json": '{"a": 1}'})
    assert one != built(tmp_path / "two.tar.gz", second).read_bytes()


def test_building_from_an_archive_gives_the_archive(tmp_path: Path) -> None:
    """Nothing is lost on the way, so an archive can be signed again."""
    first = built(tmp_path / "one.tar.gz", write(tmp_path / "d", {**POLICY, "p/p.py": PYTHON}), revision="7")

    assert built(tmp_path / "two.tar.gz", first).read_bytes() == first.read_bytes()


def test_it_is_complete_and_leaves_tests_behind(tmp_path: Path) -> None:
    """What we lend is in it; tests, cases and other files are not."""
    more = {"area/a/a_test.rego": "package x", "area/a/cases.yaml": "pass: {}", "README.md": "x", ".git/x.rego": "x"}
    root = write(tmp_path / "d", {**POLICY, **more, "p/p.py": PYTHON, "p/test_p.py": ""})

    names = set(unpacked(built(tmp_path / "b.tar.gz", root)))

    assert {"area/a/a.rego", "p/p.py", ".manifest", "lib/words.rego", "facts/vm_sizes/data.json"} <= names
    assert not {name for name in names if "test" in name or "cases" in name or "README" in name or ".git" in name}
    assert load_bundle(tmp_path / "b.tar.gz").digest == load_bundle(root).digest


def test_the_manifest_has_revision_roots_and_digest(tmp_path: Path) -> None:
    """Derived where the directory has none, kept where it has one; other metadata stays."""
    plain = write(tmp_path / "plain", {**POLICY, "x/data.json": '{"k": 1}', "data.json": '{"top": 1}'})
    content = manifest(built(tmp_path / "b.tar.gz", plain))
    assert content["roots"] == ["area", "facts", "lib", "top", "x"]
    assert content["rego_version"] == 1
    assert content["metadata"] == {"policyeng": {"digest": load_bundle(plain).digest}}
    assert content["revision"] == ""

    metadata = '{"owner": "me", "policyeng": {"k": 1}}'
    own = f'{{"revision": "3", "roots": ["area/a", "x"], "rego_version": 1, "metadata": {metadata}}}'
    stated = write(tmp_path / "stated", {**POLICY, "x/data.json": '{"k": 1}', ".manifest": own})
    content = manifest(built(tmp_path / "b.tar.gz", stated))
    assert content["roots"] == ["area/a", "facts", "lib", "x"]
    assert content["metadata"] == {"owner": "me", "policyeng": {"k": 1, "digest": load_bundle(stated).digest}}
    assert content["revision"] == "3"
    assert manifest(built(tmp_path / "b.tar.gz", stated, revision="4"))["revision"] == "4"


def test_a_root_of_everything_stays_alone(tmp_path: Path) -> None:
    """OPA refuses roots that lie within each other."""
    root = write(tmp_path / "d", {**POLICY, ".manifest": '{"roots": [""]}'})

    assert manifest(built(tmp_path / "b.tar.gz", root))["roots"] == [""]


def test_the_documents_of_a_folder_become_one(tmp_path: Path) -> None:
    """YAML too, and those of several directories; a document that is alone keeps its bytes."""
    one = write(
        tmp_path / "1", {**POLICY, "x/data.json": '{ "a": 1.50 }', "y/data.yaml": "b: [1, x]", "z/data.json": "{}"}
    )
    two = write(tmp_path / "2", {"z/data.yml": "c: true", "z/data.json": '{"d": 1}'})
    files = unpacked(built(tmp_path / "b.tar.gz", one, two))

    assert files["x/data.json"] == b'{ "a": 1.50 }'
    assert files["y/data.json"] == b'{"b":[1,"x"]}'
    assert files["z/data.json"] == b'{"c":true,"d":1}'
    assert not {name for name in files if name.endswith((".yaml", ".yml"))}
    assert load_bundle(tmp_path / "b.tar.gz").digest == load_bundle(one, two).digest


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({".manifest": '{"roots": ["elsewhere"]}'}, "the package `area/a` is outside"),
        ({".manifest": '{"roots": ["area/a/b"]}'}, "the package `area/a` is outside"),
        ({".manifest": '{"roots": ["area"]}', "x/data.json": '{"k": 1}'}, "the data at `x` is outside"),
        (
            {".manifest": '{"roots": ["area", "x/y"]}', "x/data.json": '{"y": 1, "z": 1}'},
            "the data at `x/z` is outside",
        ),
    ],
)
def test_what_opa_would_refuse_is_not_built(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """Something outside the roots that the manifest states."""
    with pytest.raises(BundleError, match=message) as refusal:
        built(tmp_path / "b.tar.gz", write(tmp_path / "d", {**POLICY, **files}))

    assert "roots" in refusal.value.remedy


def test_two_directories_with_one_name_for_two_files_are_not_built(tmp_path: Path) -> None:
    """An archive has one file per name; the same content twice is no conflict."""
    one = write(tmp_path / "1", {**POLICY, "shared/x.rego": "package shared.x\n"})
    two = write(
        tmp_path / "2",
        {"shared/x.rego": "package shared.x\n", "b/b.rego": rego("b", deny_when("true"), identity="T-B-1")},
    )
    assert built(tmp_path / "b.tar.gz", one, two)

    write(two, {"shared/x.rego": "package shared.y\n"})
    with pytest.raises(BundleError, match=r"two files are called `shared/x\.rego`"):
        built(tmp_path / "b.tar.gz", one, two)


def test_two_rego_versions_are_not_built(tmp_path: Path) -> None:
    """One archive has one version."""
    text = rego("a", f"import rego.v1\n\n{deny_when('true')}")
    one = write(tmp_path / "1", {"area/a/a.rego": text, ".manifest": '{"rego_version": 0}'})
    two = write(tmp_path / "2", {"p/p.py": PYTHON})

    with pytest.raises(BundleError, match="different Rego versions"):
        built(tmp_path / "b.tar.gz", one, two)


def test_modules_in_rego_v0_are_named_in_the_manifest(opa: Path, tmp_path: Path) -> None:
    """OPA reads every other module as v1, and these as they are written."""
    old = rego("b", 'deny[x] { x := {"msg": "m"} }', identity="T-B-1")
    origins = open_origins([write(tmp_path / "d", {**POLICY, "area/b/b.rego": old})])
    bundle = replace(bundle_of(origins), rego_v0=frozenset({"area/b/b.rego"}))
    (tmp_path / "b.tar.gz").write_bytes(archive_bytes(archive_files(bundle, origins)))

    assert manifest(tmp_path / "b.tar.gz")["file_rego_versions"] == {
        "area/b/b.rego": 0,
        "/area/b/b.rego": 0,
    }
    command = [str(opa), "eval", "--bundle", "b.tar.gz", "--format", "raw", "count(data.area[_].deny)"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_signature_covers_every_file(tmp_path: Path) -> None:
    """Python policies as well; built twice, a signed archive has the same bytes."""
    origins = open_origins([write(tmp_path / "d", {**POLICY, "p/p.py": PYTHON})])
    key = SigningKey.read(keys(tmp_path, "p256").private)
    files = archive_files(bundle_of(origins), origins, key=key)

    assert PurePosixPath(".signatures.json") in files
    assert archive_bytes(files) == archive_bytes(archive_files(bundle_of(origins), origins, key=key))


def test_windows_line_ends_are_the_same_bundle(tmp_path: Path) -> None:
    """The digest is over the content, and that has one form of line ends."""
    unix = load_bundle(write(tmp_path / "d", POLICY))
    windows = {name: text.replace("\n", "\r\n").encode() for name, text in POLICY.items()}

    assert load_bundle(packed(tmp_path / "b.tar.gz", dict(windows))).digest == unix.digest


def test_an_archive_of_gatekeepers_files_is_the_bundle(tmp_path: Path) -> None:
    """The modules of templates lie in it for OPA, and are not read twice; constraints keep kinds and parameters."""
    folder = Path(__file__).parent / "collections/gatekeeper"
    opened = open_origins([folder / "policy"])
    bundle, archive = bundle_of(opened), built(tmp_path / "b.tar.gz", folder / "policy")
    read = load_bundle(archive)
    snapshot = load_snapshot(folder / "inputs/objects.yaml", documents=True, resources=False)

    direct, again = (
        evaluate(each, snapshot, as_of=datetime(2026, 6, 1, tzinfo=UTC)).findings for each in (bundle, read)
    )

    assert (read.digest, read.modules, read.policies) == (bundle.digest, bundle.modules, bundle.policies)
    assert direct == again
    assert any(finding.denials for finding in again)
    assert {"requiredowner/template.yaml.rego", "requiredowner/template.yaml.lib1.rego"} <= set(unpacked(archive))
    assert "requiredowner" in str(manifest(archive)["roots"])
