"""Evidence packs: all that a run is based on in one archive, which is verified without the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import orjson
from sqlalchemy import select

from policyeng import __version__
from policyeng.audit.records import AuditRun, FindingSpan, RunPart
from policyeng.audit.replay import replay
from policyeng.audit.run_report import reported
from policyeng.audit.store.store import Store, contents_of, run_of
from policyeng.audit.store.tables import (
    MAX_CONTENT,
    RUNS,
    PartRow,
    canonical,
    content_of,
    digest_of,
    evaluation_of,
    head_of,
    resources_of,
    run_hash,
    snapshot_of,
)
from policyeng.bundle import Bundle
from policyeng.bundle.archive import ArchiveLimits, archive_bytes, read_archive
from policyeng.bundle.assembling import unpack_bundle
from policyeng.engines import OpaOptions
from policyeng.errors import InputError, StoreError, UsageError
from policyeng.facts.catalogue import built_in_root
from policyeng.models import Evaluation, JsonObject, Snapshot, Summary
from policyeng.report import FORMATS, INFORMED

LIMITS = ArchiveLimits(archive=1 << 28, total=1 << 30, member=MAX_CONTENT, members=100_000)
_VERSION = 1
_INDEX, _README, _RUN, _LATER, _PARTS, _POLICIES = (
    PurePosixPath(name)
    for name in ("evidence.json", "README.md", "run.json", "later-runs.jsonl", "parts.json", "policies.json")
)
#: By format, the reports, which are of the run alone: no trend, and no time at which a finding was first seen.
_REPORTS = {name: PurePosixPath(f"report.{name}") for name in ("json", "html")}
_TEXT = """# Evidence of run {number} of `{estate}`

Verify this pack, with the head of the store as it was recorded elsewhere:

    policyeng audit evidence --verify PACK --expect {head}

| member | content |
| --- | --- |
| `report.html`, `report.json` | the report of the run |
| `run.json` | the header of the run; its SHA-256 is the hash of the run |
| `later-runs.jsonl` | the headers of the runs after it, each with the hash of the one before it, up to the head |
| `parts.json` | the parts of the run with the digests of their snapshots and evaluations |
| `policies.json` | the policies, with their selection and data |
| `snapshots/`, `evaluations/`, `findings/` | what was evaluated and what it resulted in, by the position of the part |
| `evidence.json` | the SHA-256 of every other member, and the head |
"""


class PackFault(NamedTuple):
    """Something in a pack that does not match: the member, and how."""

    member: str
    message: str


class VerifiedPack(NamedTuple):
    """The result of verifying a pack.

    Attributes:
        run: the run that it is about.
        head: the hash of the newest run of the store when the pack was made.
        faults: what does not match; empty if everything does.
        undecided: what could not be compared, such as the results of another version of policyeng.
    """

    run: AuditRun
    head: str
    faults: Sequence[PackFault]
    undecided: Sequence[str]


class PackedRun:
    """The run of a pack; it implements `records.History`, and what a replay reads of a store."""

    def __init__(self, files: Mapping[PurePosixPath, bytes], retention: str) -> None:
        self._files = files
        self._retention = retention
        document = files[_RUN].decode()
        self.only = run_of(document, run_hash(document))
        self._rows = [PartRow(*row) for row in orjson.loads(files[_PARTS])]
        self._positions = {row.name: position for position, row in enumerate(self._rows)}

    def estates(self) -> Sequence[str]:
        """Return the name of the estate."""
        return [self.only.estate]

    def runs(self, estate: str, *, last: int | None = None) -> Sequence[AuditRun]:  # noqa: ARG002  # there is one
        """Return the run, if it is of the estate."""
        return [self.only] if estate == self.only.estate else []

    def run(self, number: int) -> AuditRun:
        """Return the run.

        Raises:
            UsageError: it has another number.
        """
        if number != self.only.number:
            raise UsageError(f"the pack is of run {self.only.number}", remedy="leave the number out")
        return self.only

    def rows(self, _: AuditRun) -> Iterator[PartRow]:
        """Yield the rows of the parts, in order."""
        yield from self._rows

    def content(self, _: AuditRun, rows: Iterable[PartRow]) -> str:
        """Return the content hash of the run with these parts."""
        return content_of(digest_of(self._files[_POLICIES]), self._retention, rows)

    def parts(self, _: AuditRun) -> Iterator[RunPart]:
        """Yield the parts in order."""
        for row in self._rows:
            yield RunPart(
                name=row.name,
                snapshot=row.snapshot,
                evaluation=row.evaluation,
                exit_code=row.exit_code,
                summary=Summary.model_validate_json(row.summary),
            )

    def part(self, run: AuditRun, name: str) -> RunPart | None:
        """Return the part of a name; None if the run has none."""
        return next((part for part in self.parts(run) if part.name == name), None)

    def bundle(self, _: AuditRun) -> Bundle:
        """Return the policies, with their selection."""
        return unpack_bundle(self._files[_POLICIES])

    def head_and_findings(self, row: PartRow) -> tuple[bytes, bytes]:
        """Return the stored evaluation of a part."""
        head, findings = (self._files[_member(kind, self._positions[row.name])] for kind in ("evaluations", "findings"))
        return head, findings

    def evaluation(self, part: RunPart) -> Evaluation:
        """Return the evaluation of a part."""
        return evaluation_of(*self.head_and_findings(self._rows[self._positions[part.name]]))

    def snapshot(self, part: RunPart) -> Snapshot:
        """Return the snapshot of a part."""
        return snapshot_of(*_split(self._files[_member("snapshots", self._positions[part.name])]))

    def spans(self, estate: str, *, since: int = 0) -> Iterator[FindingSpan]:  # noqa: ARG002  # as of every history
        """Yield nothing: other runs are not in the pack."""
        yield from ()

    def reports(self) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yield the reports with their members."""
        gathered = reported(self, self.only)
        for name, member in _REPORTS.items():
            about = {"about": gathered.about} if name in INFORMED else {}
            yield member, FORMATS[name](gathered.evaluation, **about).encode()

    def mismatches(self) -> Iterator[PackFault]:
        """Yield what the hash of the run does not cover as it is."""
        if self.content(self.only, self._rows) != self.only.content:
            yield PackFault(str(_PARTS), "the parts, the policies or the retention are not those of the run")
        if self.only.parts != len(self._rows):
            yield PackFault(str(_PARTS), f"there are {len(self._rows)} parts, and the run has {self.only.parts}")
        for position, row in enumerate(self._rows):
            if not row.snapshot:
                continue
            head, findings = self.head_and_findings(row)
            frame, _ = _split(self._files[_member("snapshots", position)])
            for kind, expected, actual in (
                ("snapshots", row.snapshot, digest_of(frame)),
                ("evaluations", row.evaluation, digest_of(head)),
                ("findings", head_of(head).findings, digest_of(findings)),
            ):
                if expected != actual:
                    yield PackFault(str(_member(kind, position)), "it is not what the run refers to")


def _member(kind: str, position: int) -> PurePosixPath:
    return PurePosixPath(kind, f"{position + 1:06d}.json")


def _join(frame: bytes, contents: Mapping[str, bytes]) -> bytes:
    """Return a snapshot as one document."""
    resources = [orjson.loads(contents[digest]) for digest in resources_of(frame)]
    return canonical({**orjson.loads(frame)["frame"], "resources": resources})


def _split(document: bytes) -> tuple[bytes, Mapping[str, bytes]]:
    """Return the frame and the resources of a snapshot as the store has them."""
    rest: JsonObject = orjson.loads(document)
    resources = [canonical(resource) for resource in rest.pop("resources")]
    digests = [digest_of(resource) for resource in resources]
    return canonical({"frame": rest, "resources": digests}), dict(zip(digests, resources, strict=True))


def build_pack(store: Store, number: int) -> bytes:
    """Return the evidence pack of a run, the same bytes for the same store.

    Raises:
        UsageError: there is no such run, retention removed a content of it, or it is too large for a pack.
        StoreError: a content is not what was stored.
    """
    run = store.run(number)
    bundle_digest, retention, documents = _headers(store, number)
    policies = contents_of(store, [bundle_digest]).get(bundle_digest)
    if policies is None:
        raise UsageError(f"the policies of run {number} are not in the store", remedy="choose a newer run")
    rows = list(store.rows(run))
    files = {
        _RUN: documents[0].encode(),
        _LATER: b"".join(document.encode() + b"\n" for document in documents[1:]),
        _PARTS: canonical([list(row) for row in rows]),
        _POLICIES: policies,
    }
    parts = list(store.parts(run))
    for position, (row, part) in enumerate(zip(rows, parts, strict=True)):
        if not row.snapshot:
            continue
        store.snapshot(part)  # with an error that names the part where a content is gone
        frame = contents_of(store, [row.snapshot])[row.snapshot]
        files[_member("snapshots", position)] = _join(frame, contents_of(store, resources_of(frame)))
        head, findings = store.head_and_findings(row)
        files[_member("evaluations", position)], files[_member("findings", position)] = head, findings
        if sum(map(len, files.values())) > LIMITS.total or len(files) > LIMITS.members - len(_REPORTS) - 2:
            remedy = "split the estate into smaller ones"
            raise UsageError(f"run {number} is larger than a pack can be, {LIMITS.total} bytes", remedy=remedy)
    files |= PackedRun(files, retention).reports()
    head_hash = run_hash(documents[-1])
    files[_README] = _TEXT.format(number=number, estate=run.estate, head=head_hash).encode()
    index = {
        "packVersion": _VERSION,
        "policyeng": __version__,
        "run": number,
        "hash": run.hash,
        "head": head_hash,
        "policies": bundle_digest,
        "retention": retention,
        "members": {str(path): digest_of(content) for path, content in files.items()},
    }
    files[_INDEX] = orjson.dumps(index, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    return archive_bytes(files)


def _headers(store: Store, number: int) -> tuple[str, str, list[str]]:
    """Return the digest of the policies and the retention of a run, and the documents from it on."""
    columns = (RUNS.c.document, RUNS.c.policies, RUNS.c.retention)
    with store.reading() as connection:
        found = connection.execute(select(*columns).where(RUNS.c.number >= number).order_by(RUNS.c.number)).all()
    return found[0].policies, found[0].retention, [row.document for row in found]


def verify_pack(
    path: Path, expected: Sequence[str] = (), opa: OpaOptions | None = None, *, run_python: bool = False
) -> VerifiedPack:
    """Verify a pack: digests, the chain, the reports, and the evaluation, which is repeated.

    Args:
        path: the archive.
        expected: hashes of runs, recorded elsewhere, that the chain of the pack must contain.
        opa: the OPA to use, for a run with that engine.
        run_python: evaluate Python policies that are not built in.

    Raises:
        BundleError: the archive cannot be read.
        InputError: the archive is not an evidence pack, or is of a newer version.
        UsageError: the pack has Python policies that are not built in, and they may not run.
    """
    files = read_archive(path, LIMITS).files
    try:
        index: dict[str, Any] = orjson.loads(files[_INDEX])
        if index["packVersion"] != _VERSION:
            what = f"the pack has the version `{index['packVersion']}`"
            raise InputError(what, place=(str(path),), remedy="use the version of policyeng that made it")
        faults = list(_digests(files, index["members"]))
        packed = PackedRun(files, index["retention"])
        faults += _chain(files, packed.only, index, expected)
        faults += packed.mismatches()
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        what = f"not an evidence pack, or a member is missing or malformed ({type(error).__name__}: {error})"
        raise InputError(what, place=(str(path),), remedy="get the pack again") from None
    if faults:
        return VerifiedPack(packed.only, index["head"], faults, ())
    if not run_python:
        _require_known_python(files[_POLICIES], path)
    undecided: list[str] = []
    replayed = replay(packed, packed.only, opa)
    if replayed.content != packed.only.content:
        differences = [
            PackFault(each.part, f"{each.path}: was {each.before}, now {each.now}") for each in replayed.differences
        ]
        if replayed.engine == packed.only.engine.version:
            faults += differences
        else:
            undecided.append(f"the run used the engine {packed.only.engine.version}, and this is {replayed.engine}")
    if index["policyeng"] == __version__:
        faults += [
            PackFault(str(member), "it is not the report of the evaluations in the pack")
            for member, content in packed.reports()
            if files[member] != content
        ]
    else:
        undecided.append(f"the reports are by policyeng {index['policyeng']}, and this is {__version__}")
    return VerifiedPack(packed.only, index["head"], faults, undecided)


def _digests(files: Mapping[PurePosixPath, bytes], stated: Mapping[str, str]) -> Iterator[PackFault]:
    actual = {str(path): digest_of(content) for path, content in files.items() if path != _INDEX}
    for name in sorted(actual.keys() | stated.keys()):
        if name not in stated:
            yield PackFault(name, "`evidence.json` does not name it")
        elif name not in actual:
            yield PackFault(name, "it is missing")
        elif actual[name] != stated[name]:
            yield PackFault(name, "its SHA-256 is not that in `evidence.json`")


def _chain(
    files: Mapping[PurePosixPath, bytes], run: AuditRun, index: Mapping[str, Any], expected: Sequence[str]
) -> Iterator[PackFault]:
    if run.hash != index["hash"]:
        yield PackFault(str(_RUN), "its SHA-256 is not the hash of the run")
    hashes, number = [run.hash], run.number
    for line in files[_LATER].splitlines():
        number += 1
        document = orjson.loads(line)
        if (document["number"], document["previous"]) != (number, hashes[-1]):
            yield PackFault(str(_LATER), f"run {number} does not follow the run before it")
        hashes.append(digest_of(line))
    if hashes[-1] != index["head"]:
        yield PackFault(str(_LATER), "the last run is not the head")
    for given in expected:
        if given not in hashes:
            yield PackFault(str(_LATER), f"no run of the pack has the expected hash `{given}`")


def _require_known_python(policies: bytes, path: Path) -> None:
    """Require that all Python in the policies is that of this installation: the rest could do anything.

    Raises:
        UsageError: there is other Python.
    """
    given = {
        content
        for origin in orjson.loads(policies)["origins"]
        for name, content in origin["files"].items()
        if name.endswith(".py")
    }
    known = {file.read_bytes().decode("latin-1") for file in built_in_root().rglob("*.py")} if given else set()
    if given - known:
        what = "the pack has Python policies that are not built in, and evaluating them runs their code"
        raise UsageError(what, place=(str(path),), remedy="review `policies.json` in it, then add --run-python")
