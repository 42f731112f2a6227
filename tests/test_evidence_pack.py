"""`audit evidence`: a pack of a run is verified without the store, and whatever is changed in it is found."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from unittest.mock import patch

import orjson
import pytest

from policyeng.audit.evidence_pack import PackedRun
from policyeng.audit.store.tables import canonical, digest_of
from policyeng.bundle import load_bundle
from policyeng.bundle.archive import archive_bytes, read_archive
from tests.audits import POLICIES, Audited, exemption, setup_of
from tests.bundles import WORKSPACE, write
from tests.command import policyeng
from tests.test_audit_replay import PYTHON

Files = dict[PurePosixPath, bytes]
_INDEX = PurePosixPath("evidence.json")


@pytest.fixture
def audited(tmp_path: Path) -> Audited:
    """Three runs of an estate with a part that cannot be read."""
    kept = Audited(tmp_path)
    kept.write("d", b'{"resources": [{"id": "' + WORKSPACE.encode() + b'"')
    kept.audit()
    kept.audit(exemptions=[exemption("one")])
    kept.audit()
    return kept


@pytest.fixture
def pack(audited: Audited, tmp_path: Path) -> Path:
    """The pack of the second run; the store is gone."""
    path = tmp_path / "pack.tar.gz"
    packed = policyeng("audit", "evidence", "2", "--output", str(path), "--store", audited.url)
    assert packed.returncode == 0, packed.stderr
    audited.close()
    (tmp_path / "audits.db").unlink()
    return path


def verify(path: Path, *more: str) -> tuple[int, str, str]:
    """The exit code and what is printed."""
    ran = policyeng("audit", "evidence", "--verify", str(path), *more)
    return ran.returncode, ran.stdout, ran.stderr


def changed(path: Path, change: Callable[[Files], None], *, indexed: bool = True) -> Path:
    """The pack with other members; `indexed` has their digests in the index, as a careful forger would."""
    files = dict(read_archive(path).files)
    change(files)
    if indexed:
        index = orjson.loads(files[_INDEX])
        index["members"] = {str(name): digest_of(content) for name, content in files.items() if name != _INDEX}
        files[_INDEX] = orjson.dumps(index)
    other = path.with_name("changed.tar.gz")
    other.write_bytes(archive_bytes(files))
    return other


def test_a_pack_is_verified_without_the_store(pack: Path) -> None:
    """With the head, which the run after the packed one is."""
    files = read_archive(pack).files
    index = orjson.loads(files[_INDEX])

    code, printed, errors = verify(pack, "--expect", index["head"], "--expect", index["hash"])

    assert (code, errors) == (0, "")
    assert printed == f"run 2 of production, 4 parts: verified\nhead {index['head']}\n"
    assert index["head"] != index["hash"] == digest_of(files[PurePosixPath("run.json")])
    assert orjson.loads(files[PurePosixPath("report.json")])["summary"]["exempt"] == 1
    assert b"<html" in files[PurePosixPath("report.html")]
    assert len([name for name in files if name.parts[0] == "snapshots"]) == 3


def test_a_pack_is_the_same_each_time(audited: Audited, tmp_path: Path) -> None:
    """Byte for byte."""
    paths = [tmp_path / name for name in ("one.tar.gz", "two.tar.gz")]
    for path in paths:
        assert policyeng("audit", "evidence", "1", "--output", str(path), "--store", audited.url).returncode == 0
    audited.close()

    assert paths[0].read_bytes() == paths[1].read_bytes()


def swap(name: str, before: bytes, after: bytes) -> Callable[[Files], None]:
    """Change a text of a member."""

    def change(files: Files) -> None:
        assert before in files[PurePosixPath(name)]
        files[PurePosixPath(name)] = files[PurePosixPath(name)].replace(before, after)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap("snapshots/000001.json", b'"x":1', b'"x":0'), "snapshots/000001.json: it is not what the run refers to"),
        (swap("findings/000001.json", b'"severity":"high"', b'"severity":"low"'), "findings/000001.json: it is not"),
        (swap("evaluations/000002.json", b'"exitCode":0', b'"exitCode":1'), "evaluations/000002.json: it is not"),
        (swap("policies.json", b"properties.x == 1", b"properties.x == 9"), "parts.json: the parts, the policies"),
        (swap("parts.json", b'"a.json"', b'"z.json"'), "parts.json: the parts, the policies"),
        (swap("run.json", b'"owner":"a"', b'"owner":"c"'), "run.json: its SHA-256 is not the hash of the run"),
        (swap("later-runs.jsonl", b'"previous":"', b'"previous":"0'), "run 3 does not follow the run before it"),
        (lambda files: files.update({PurePosixPath("later-runs.jsonl"): b""}), "the last run is not the head"),
        (swap("report.json", b'"severity": "high"', b'"severity": "low"'), "report.json: it is not the report of"),
        (swap("report.html", b"</body>", b"all good</body>"), "report.html: it is not the report of"),
    ],
)
def test_what_was_changed_is_found(pack: Path, change: Callable[[Files], None], message: str) -> None:
    """Though the index has the new digest."""
    code, printed, errors = verify(changed(pack, change))

    assert code == 1, errors
    assert message in errors
    assert "verified" not in printed


def test_members_are_those_of_the_index(pack: Path) -> None:
    """None more, none less, none other."""

    def change(files: Files) -> None:
        files[PurePosixPath("more.txt")] = b"x"
        files[PurePosixPath("README.md")] += b"x"
        del files[PurePosixPath("report.html")]

    code, _, errors = verify(changed(pack, change, indexed=False))

    assert code == 1
    assert "more.txt: `evidence.json` does not name it" in errors
    assert "README.md: its SHA-256 is not that in `evidence.json`" in errors
    assert "report.html: it is missing" in errors


def test_a_consistent_forgery_has_another_head(pack: Path) -> None:
    """All hashes computed again, and the reports made again: what was recorded elsewhere distinguishes them."""
    recorded = orjson.loads(read_archive(pack).files[_INDEX])["head"]

    def forge(files: Files) -> None:
        run = orjson.loads(files[PurePosixPath("run.json")])
        document = canonical({**run, "inputs": ["elsewhere"]})
        index = orjson.loads(files[_INDEX])
        index["hash"] = index["head"] = digest_of(document)
        files.update({PurePosixPath("run.json"): document, PurePosixPath("later-runs.jsonl"): b""})
        files[_INDEX] = orjson.dumps(index)
        files.update(PackedRun(files, index["retention"]).reports())

    forged = changed(pack, forge)

    assert verify(forged)[0] == 0
    code, _, errors = verify(forged, "--expect", recorded)
    assert code == 1
    assert f"no run of the pack has the expected hash `{recorded}`" in errors


@pytest.mark.parametrize("name", ["../evil.json", "/etc/passwd", "C:/x", "a\\b"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written, and the exit code shows that it could not be verified."""
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())

    code, _, errors = verify(tmp_path / "p.tar.gz")

    assert code == 2
    assert "the name of the member" in errors


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"packVersion": 2}', b'{"packVersion": 1, "members": {}}'])
def test_what_is_no_pack_cannot_be_verified(tmp_path: Path, content: bytes) -> None:
    """With exit 2 and a message."""
    path = tmp_path / "p.tar.gz"
    path.write_bytes(archive_bytes({_INDEX: content}))

    code, printed, errors = verify(path)

    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert verify(tmp_path / "nowhere.tar.gz")[0] == 2


def test_another_version_cannot_compare_all(pack: Path) -> None:
    """The digests are verified all the same."""
    with patch("policyeng.audit.evidence_pack.__version__", "9.9"):
        code, printed, errors = verify(pack)

    assert code == 2
    assert "not compared: the reports are by policyeng" in errors
    assert "not fully verified" in printed


def test_python_of_a_pack_runs_only_on_request(tmp_path: Path) -> None:
    """A pack comes from elsewhere; the built-in policies are known."""
    kept = Audited(tmp_path, setup=setup_of(load_bundle(write(tmp_path / "p", {**POLICIES, "area/p/p.py": PYTHON}))))
    kept.audit()
    path = str(tmp_path / "p.tar.gz")
    assert policyeng("audit", "evidence", "1", "--output", path, "--store", kept.url).returncode == 0
    kept.close()

    refused = verify(Path(path))
    assert refused[0] == 3
    assert "then add --run-python" in refused[2]
    assert verify(Path(path), "--run-python")[0] == 0


@pytest.mark.slow
def test_built_in_policies_in_python_are_known(tmp_path: Path) -> None:
    """They run without a request."""
    kept = Audited(tmp_path, setup=setup_of(load_bundle()))
    kept.audit()
    path = str(tmp_path / "p.tar.gz")
    assert policyeng("audit", "evidence", "1", "--output", path, "--store", kept.url).returncode == 0
    kept.close()

    assert verify(Path(path)) == (0, *verify(Path(path))[1:2], "")


@pytest.mark.parametrize(
    "words",
    [(), ("1",), ("--output", "x"), ("1", "--verify", "x"), ("1", "--output", "x", "--expect", "y")],
)
def test_the_options_go_together(words: tuple[str, ...]) -> None:
    """Anything else is a usage error."""
    assert policyeng("audit", "evidence", *words).returncode == 3
