"""Reading bundle archives: ours, those that people pack, OPA's, and those that no one should have packed."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.archive import ArchiveLimits, read_archive
from policyeng.errors import BundleError
from tests.archives import POLICY, archive, member, packed
from tests.bundles import deny_when, rego, write

BOTH = {**POLICY, "area/b/b.rego": rego("b", deny_when("true"), identity="T-B-1")}


def rooted(path: Path, files: dict[str, str | bytes]) -> Path:
    """An archive in the form that `opa build` writes."""
    return packed(path, {"data.json": "{}", **files}, before="/")


def same(one: Bundle, other: Bundle) -> bool:
    """Whether two bundles decide the same, under the same digest."""
    return all(getattr(one, part) == getattr(other, part) for part in ("digest", "policies", "modules", "data"))


def test_an_archive_is_the_directory_that_was_packed(tmp_path: Path) -> None:
    """However it is packed: policies, modules, data, digest and revision are those of the directory."""
    files = {
        **BOTH,
        "area/data.json": '{"k": [1]}',
        "area/a/a_test.rego": "package x",
        ".manifest": '{"revision": "7"}',
    }
    directory = load_bundle(write(tmp_path / "d", files))

    for before in ("", "./"):
        read = load_bundle(packed(tmp_path / "b.tar.gz", dict(files), before=before))
        assert same(read, directory)
        assert (read.name, read.revision) == ("b", "7")


def test_the_manifest_is_no_part_of_the_digest(tmp_path: Path) -> None:
    """It names the digest, so it cannot be in it; revision and roots change nothing that is evaluated."""
    plain = load_bundle(write(tmp_path / "one", POLICY))
    named = load_bundle(write(tmp_path / "two", {**POLICY, ".manifest": '{"revision": "9", "roots": ["area"]}'}))

    assert plain.digest == named.digest


def test_the_digest_is_over_the_content_not_over_its_layout(tmp_path: Path) -> None:
    """One data document or several, JSON or YAML, with spaces or without: the same digest; another value: another."""
    one = load_bundle(write(tmp_path / "one", {**POLICY, "x/data.json": '{"b": 1, "a": [true, null]}'}))
    two = load_bundle(
        write(tmp_path / "two", {**POLICY, "data.yaml": "x:\n  a: [true, null]\n", "x/data.json": '{"b":1}'})
    )
    three = load_bundle(write(tmp_path / "three", {**POLICY, "x/data.json": '{"b": 2, "a": [true, null]}'}))

    assert one.digest == two.digest
    assert one.digest != three.digest


def test_the_form_of_opa_build_is_read(tmp_path: Path) -> None:
    """The directory before the modules is taken off, and what lies in the joined data is not lent again."""
    data = '{"facts": {"vm_sizes": {}}, "area": {"k": 1}}'
    files: dict[str, str | bytes] = {f"somewhere/policies/{name}": text for name, text in BOTH.items()}
    manifest = '{"file_rego_versions": {"/somewhere/policies/area/a/a.rego": 1}}'
    read = load_bundle(rooted(tmp_path / "b.tar.gz", {**files, "data.json": data, ".manifest": manifest}))

    assert [(policy.id, policy.area, policy.file) for policy in read.policies] == [
        ("T-A-1", "area", "area/a/a.rego"),
        ("T-B-1", "area", "area/b/b.rego"),
    ]
    assert read.data == {"facts": {"vm_sizes": {}}, "area": {"k": 1}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"optimized/area/a.rego": "package area.a\ndeny contains 1"}, "dropped their headers"),
        ({"policy.wasm": b"\0asm"}, "WebAssembly"),
        ({"plan.json": "{}"}, "compiled to a plan"),
        ({"patch.json": '{"data": []}'}, "changes to another bundle"),
        ({".manifest.pb": b"\n\x01"}, "protobuf"),
        ({".manifest": "[]"}, "not an object"),
        ({".manifest": '{"roots": "area"}'}, "`roots`"),
        ({".manifest": '{"revision": 7}'}, "`revision`"),
        ({".manifest": '{"rego_version": 2}'}, "`rego_version`"),
        ({".manifest": '{"file_rego_versions": {"/a": "1"}}'}, "`file_rego_versions`"),
        ({".manifest": '{"metadata": 1}'}, "`metadata`"),
        ({"x/area/a/a.rego": POLICY["area/a/a.rego"].replace("T-A-1", "T-A-2")}, "share the package"),
    ],
)
def test_what_opa_can_leave_out_or_wrongly_put_in_is_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    """An archive without headers or sources is named as such, with what to do instead."""
    with pytest.raises(BundleError, match=message):
        load_bundle(rooted(tmp_path / "b.tar.gz", {"area/a/a.rego": POLICY["area/a/a.rego"], **files}))


def test_two_modules_whose_paths_become_one_are_refused(tmp_path: Path) -> None:
    """`opa build` of two directories; which module is meant would be chance."""
    files: dict[str, str | bytes] = {"p/area/a/a.rego": POLICY["area/a/a.rego"], "area/a/a.rego": "package x"}

    with pytest.raises(BundleError, match="two modules have one path"):
        load_bundle(rooted(tmp_path / "b.tar.gz", files))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:0], "is cut off"),
        (lambda content: content[:-1], "is cut off"),
        (lambda content: content[: len(content) // 2], "is cut off"),
        (lambda content: content[:9], "is cut off"),
        (lambda content: b"PK\x03\x04" + content, "not a gzip file"),
        (lambda content: gzip.decompress(content), "not a gzip file"),
        (lambda content: content[:-8] + b"\0\0\0\0" + content[-4:], "checksum is wrong"),
        (lambda content: content[:30] + bytes([content[30] ^ 255]) + content[31:], "cannot be inflated"),
        (lambda content: content + b"x", "follows the end of the gzip stream"),
        (lambda content: content + content, "follows the end of the gzip stream"),
    ],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: object, message: str) -> None:
    """Cut off, not gzip, a wrong checksum, something behind it."""
    path = packed(tmp_path / "b.tar.gz", dict(POLICY))
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]  # one of the functions above

    with pytest.raises(BundleError, match=message) as refusal:
        load_bundle(path)

    assert refusal.value.place == (str(path),)
    assert refusal.value.remedy


def test_every_cut_of_an_archive_is_refused(tmp_path: Path) -> None:
    """However much of it arrived, nothing is evaluated with a part."""
    path = packed(tmp_path / "b.tar.gz", dict(POLICY))
    whole = path.read_bytes()

    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(BundleError):
            read_archive(path)


@pytest.mark.slow
def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    """256 MiB of zeros is refused at the limit, with the memory of the limit."""
    path = tmp_path / "b.tar.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        for _ in range(64):
            stream.write(bytes(4 * 1024 * 1024))
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="inflates to more than 1000000 bytes"):
            read_archive(path, ArchiveLimits(total=1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()

    with pytest.raises(BundleError, match="inflates to more than 134217728 bytes"):
        load_bundle(path)


def test_too_large_a_file_is_not_read(tmp_path: Path) -> None:
    """The limit applies to the compressed archive, too."""
    path = tmp_path / "b.tar.gz"
    path.write_bytes(os.urandom(1001))

    with pytest.raises(BundleError, match="larger than 1000 bytes"):
        read_archive(path, ArchiveLimits(archive=1000))


def test_members_are_refused_with_archive_and_name(tmp_path: Path) -> None:
    """What the tar reader refuses reaches the user through `load_bundle`."""
    path = archive(tmp_path / "b.tar.gz", member("a/x.rego", kind=b"2"))

    with pytest.raises(BundleError) as refusal:
        load_bundle(path)

    assert str(refusal.value) == f"{path}: a/x.rego: the member is a symbolic link; put a copy of the file in its place"


def test_what_is_neither_directory_nor_archive_is_refused(tmp_path: Path) -> None:
    """A file of another kind, a name that does not exist, a named pipe: refused at once."""
    write(tmp_path, {"notes.txt": "no archive"})
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(BundleError, match="not a gzip file"):
        load_bundle(tmp_path / "notes.txt")
    for name in ("nowhere.tar.gz", "pipe"):
        with pytest.raises(BundleError, match="is not a directory, and no archive either"):
            load_bundle(tmp_path / name)


def test_python_in_an_archive_is_read_as_in_a_directory(tmp_path: Path) -> None:
    """Policies in Python travel with the rest, and a broken one is named by archive and member."""
    broken: dict[str, str | bytes] = {"area/p/p.py": "from policyeng import policy\n1/0"}

    with pytest.raises(BundleError, match=r"b\.tar\.gz/area/p/p\.py"):
        load_bundle(packed(tmp_path / "b.tar.gz", broken))


def test_a_data_document_is_refused_as_in_a_directory(tmp_path: Path) -> None:
    """Duplicate keys within the archive's JSON are refused with their place."""
    files: dict[str, str | bytes] = {**POLICY, "x/data.json": '{"a": 1, "a": 2}'}

    with pytest.raises(BundleError, match="duplicate key") as refusal:
        load_bundle(packed(tmp_path / "b.tar.gz", files))

    assert "x/data.json" in str(refusal.value)


@pytest.mark.parametrize("name", ["p.rego", "p.py"])
def test_one_file_of_policies_is_no_archive(tmp_path: Path, name: str) -> None:
    """Its directory is what to name."""
    write(tmp_path / "d", {name: "package p\n"})
    with pytest.raises(BundleError, match="one file is no bundle of policies; name its directory") as refusal:
        load_bundle(tmp_path / "d" / name)

    assert f"`{tmp_path / 'd'}`" in refusal.value.remedy
