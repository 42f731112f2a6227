"""The members of a tar: files and nothing else, under names that lead nowhere else."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle.archive import ArchiveLimits, read_members
from policyeng.errors import BundleError
from tests.archives import END, member, pax

LIMITS = ArchiveLimits(member=4096, members=5)
LONG = "deep/" * 30 + "policy.rego"


def names(*members: bytes, end: bytes = END) -> list[str]:
    """The paths in a tar of raw members."""
    return [str(path) for path in read_members(b"".join(members) + end, "b.tar.gz", LIMITS).files]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ((member("../x.rego"),), "leads out of the bundle"),
        ((member("a/../../x.rego"),), "leads out of the bundle"),
        ((pax(path="a/../../x.rego"), member("x.rego")), "leads out of the bundle"),
        ((member("LongLink", b"../../x.rego\0", b"L"), member("x.rego")), "leads out of the bundle"),
        ((member("../a/", kind=b"5"),), "leads out of the bundle"),
        ((member("/etc/x.rego"),), "is absolute"),
        ((member("a.rego"), member("/data.json", b"{}"), member("/b.rego")), "is absolute"),
        ((member("a\\..\\x.rego"),), "a Windows path"),
        ((member("C:/x.rego"),), "a Windows path"),
        ((member("c:x.rego"),), "a Windows path"),
        ((member("//server/x.rego"),), "a Windows path"),
        ((member("a\nb.rego"),), "control character"),
        ((pax(path="a\x7f.rego"), member("x.rego")), "control character"),
        ((member(b"\xff.rego"),), "not UTF-8"),
        ((member("x.rego", kind=b"2"),), "a symbolic link"),
        ((member("x.rego", kind=b"1"),), "a hard link"),
        ((member("x.rego", kind=b"3"),), "a device"),
        ((member("x.rego", kind=b"4"),), "a device"),
        ((member("x.rego", kind=b"6"),), "a named pipe"),
        ((member("x.rego", kind=b"S"),), "a sparse file"),
        ((member("x.rego", kind=b"7"),), "no regular file"),
        ((pax(GNU_sparse_major="1"), member("x.rego")), "sets `GNU.sparse.major`"),
        ((pax(size="99999999"), member("x.rego")), "sets `size`"),
        ((pax(linkpath="/etc/passwd"), member("x.rego")), "sets `linkpath`"),
        ((member("PaxHeaders/g", b"15 path=x.rego\n", b"g"), member("y.rego")), "names every member"),
        ((member("PaxHeaders/x", b"99 path=x.rego\n", b"x"), member("y.rego")), "is damaged"),
        ((member("PaxHeaders/x", b"0 path=x.rego\n", b"x"), member("y.rego")), "is damaged"),
        ((member("a/x.rego"), member("a/x.rego")), "duplicate member"),
        ((member("./a/x.rego"), member("a/x.rego")), "duplicate member"),
        ((member("a//x.rego"), member("a/x.rego")), "duplicate member"),
        ((member("/data.json", b"{}"), member("/x.rego"), member("/./x.rego")), "duplicate member"),
        ((member("x.rego", b"x" * 4097),), "larger than 4096 bytes"),
        (tuple(member(f"{number}.rego") for number in range(6)), "more than 5 members"),
        (tuple(member(f"{number}", kind=b"5") for number in range(6)), "more than 5 members"),
        (tuple(pax(comment="x") for _ in range(21)), "more than 5 members"),
        ((member("x.rego", size=10**6),), "cut off within the member"),
        ((member("a/", b"x", b"5"),), "directory has a content"),
    ],
)
def test_what_is_no_plain_file_is_refused_by_name(members: tuple[bytes, ...], message: str) -> None:
    """The refusal names the archive, what is wrong and what to do."""
    with pytest.raises(BundleError, match=message) as refusal:
        names(*members)

    assert refusal.value.place[0] == "b.tar.gz"
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "its end is missing"),
        (member("x.rego", b"x"), "its end is missing"),
        (member("x.rego", b"x") + bytes(512), "its end is missing"),
        (member("x.rego", b"x")[:512], "cut off within the member"),
        (member("x.rego") + member("y.rego").replace(b"y.rego", b"z.rego") + END, "damaged at byte 512"),
        (member("x.rego") + END + member("y.rego") + END, "follows the end"),
        (member("x.rego", size=0)[:124] + b"\x80" + bytes(11) + member("x.rego")[136:] + END, "damaged"),
    ],
)
def test_a_damaged_tar_is_never_a_shorter_one(content: bytes, message: str) -> None:
    """Python's own reader ends at a damaged header as if the tar were over, and policies would go missing."""
    with pytest.raises(BundleError, match=message):
        read_members(content, "b.tar.gz", LIMITS)


def test_a_size_beyond_octal_is_refused() -> None:
    """GNU's binary sizes are for files that no bundle has."""
    header = bytearray(member("x.rego"))
    header[124:136] = b"\x80" + bytes(10) + b"\x01"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)

    with pytest.raises(BundleError, match="octal digits"):
        names(bytes(header))


def test_directories_are_passed_over_and_leading_dots_taken_off() -> None:
    """What `tar czf b.tar.gz .` writes is read."""
    assert names(member("./", kind=b"5"), member("./a/", kind=b"5"), member("./a/x.rego", b"x")) == ["a/x.rego"]


def test_every_name_with_a_slash_is_the_form_of_opa() -> None:
    """OPA writes `/` before every name, and always a `/data.json`."""
    read = read_members(member("/data.json", b"{}") + member("/a/x.rego") + END, "b.tar.gz", LIMITS)

    assert read.rooted
    assert set(read.files) == {PurePosixPath("data.json"), PurePosixPath("a/x.rego")}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@given(
    files=st.dictionaries(
        st.sampled_from(["a.rego", "b/c.rego", LONG, "ä/ö.rego", "x" * 100, "y" * 90 + "/" + "z" * 99]),
        st.binary(max_size=1500),
    )
)
def test_what_tarfile_writes_is_read_as_it_is(form: int, files: dict[str, bytes]) -> None:
    """Every form of header that common tools write, with names as long as they come."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))

    read = read_members(buffer.getvalue(), "b.tar.gz", ArchiveLimits())

    assert {str(path): content for path, content in read.files.items()} == files


@given(st.binary(max_size=3000), st.integers(0, 1500), st.integers(0, 255))
def test_no_bytes_make_it_fail_otherwise(noise: bytes, position: int, byte: int) -> None:
    """Whatever the bytes, it is read or refused with a reason."""
    whole = bytearray(pax(path=LONG) + member("x.rego", b"abc") + END)
    whole[position] = byte
    for content in (noise, bytes(whole)):
        with suppress(BundleError):
            read_members(content, "b.tar.gz", LIMITS)
