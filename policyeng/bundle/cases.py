"""Test cases of policies: edits of compliant baselines with the expected outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Verdict
from policyeng.bundle.manifest import bundle_json, bundle_yaml
from policyeng.errors import BundleError, suggest_nearest
from policyeng.facts.coverage import EVERYTHING, SPELLED, covered_by, parse_entry
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import merged

#: The default clock of a case.
DEFAULT_AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: The statements of a snapshot in addition to resources, in its order.
STATED = ("approvals", "workloads", "quotas", "metrics", "principals", "evidence")


class Case(BaseModel):
    """One edit of the baselines; see `docs/policy-authoring.md`.

    Attributes:
        baseline: the stem of the baseline that is evaluated; the file's own when absent.
        patch: JSON Merge Patch (RFC 7386) on the evaluated baseline.
        with_: merge patches on other baselines, by stem.
        remove: stems of baselines to omit.
        judged: the id of a declared workload or approval that is evaluated instead of a baseline.
        path: for a fail, the path that must be denied.
        incomplete: what the snapshot reports as unread.
        covers: if set, types outside `facts.coverage.LISTED` count as read only where an entry `TYPE at ID` covers
            them, or where the estate has a resource of the type in the same subscription, as in a file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    baseline: str | None = None
    patch: JsonObject = {}
    with_: dict[str, JsonObject] = Field(default={}, alias="with")
    remove: tuple[str, ...] = ()
    judged: str | None = None
    path: str | None = None
    parameters: JsonObject = {}
    as_of: AwareDatetime | None = None
    approvals: list[JsonObject] | None = None
    workloads: list[JsonObject] | None = None
    quotas: list[JsonObject] | None = None
    metrics: list[JsonObject] | None = None
    principals: list[JsonObject] | None = None
    evidence: list[JsonObject] | None = None
    incomplete: list[str] = []
    covers: list[str] | None = None


class CaseFile(Case):
    """A `cases.yaml`: what applies to all of its cases, and the cases by outcome and name.

    Attributes:
        absent: by JSON Pointer of a field that the policy reads, the outcome of a compliant resource without it.
    """

    absent: dict[str, Verdict] = {}
    pass_: dict[str, Case] = Field(default={}, alias="pass")
    fail: dict[str, Case] = {}
    unknown: dict[str, Case] = {}
    not_judged: dict[str, Case] = {}

    def named(self) -> Iterator[tuple[Verdict, str, Case]]:
        """Yield every case with the outcome it must have and its name, with what applies to all of them filled in."""
        groups: tuple[tuple[Verdict, dict[str, Case]], ...] = (
            ("pass", self.pass_),
            ("fail", self.fail),
            ("unknown", self.unknown),
            ("not_judged", self.not_judged),
        )
        for verdict, cases in groups:
            for name, case in cases.items():
                yield verdict, name, self.filled(case)

    def filled(self, case: Case) -> Case:
        """Return a case with the file's defaults: patches are merged over the file's, and other fields replace them."""
        own = {name: getattr(case, name) for name in case.model_fields_set}
        patches = {stem: dict(patch) for stem, patch in self.with_.items()}
        for stem, patch in case.with_.items():
            patches[stem] = merged(patches.get(stem, {}), patch, keep_null=True)
        both = {
            "patch": merged(self.patch, case.patch, keep_null=True),
            "with_": patches,
            "parameters": {**self.parameters, **case.parameters},
        }
        shared = {name: getattr(self, name) for name in Case.model_fields}
        return Case.model_construct(**{**shared, **own, **both})


@dataclass(frozen=True)
class Baselines:
    """A compliant snapshot: resources by stem, and the organization's own facts."""

    resources: Mapping[str, JsonObject]
    stated: Mapping[str, list[JsonObject]] = field(default_factory=dict)

    @classmethod
    def read(cls, *directories: Path) -> Self:
        """Read `<stem>.json` and `facts.yaml` of the directories that exist; later ones win.

        Raises:
            BundleError: a file is not a JSON object or a YAML mapping.
        """
        resources: dict[str, JsonObject] = {}
        stated: dict[str, list[JsonObject]] = {}
        for directory in directories:
            for path in sorted(directory.glob("*.json")):
                resources[path.stem] = _mapping(bundle_json(path.read_bytes(), str(path)), path)
            facts = directory / "facts.yaml"
            if facts.is_file():
                stated.update(_mapping(bundle_yaml(facts.read_text(encoding="utf-8"), str(facts)), facts))
        return cls(resources, stated)


def built_in_baselines() -> Path:
    """Return the directory of the built-in baselines: inside an installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "samples"
    return (installed if installed.is_dir() else package.parent / "samples") / "baselines"


def baselines_of(bundle: Bundle) -> Baselines:
    """Return the built-in baselines, joined by those that the bundle brings in a folder `baselines`."""
    return Baselines.read(built_in_baselines(), *(root / "baselines" for root in bundle.roots if root.is_dir()))


def read_cases(policy: Policy) -> CaseFile | None:
    """Return the cases of a policy; None when it has no `cases.yaml`.

    Raises:
        BundleError: the file is not well formed, naming the key.
    """
    if policy.cases is None:
        return None
    document = _mapping(bundle_yaml(policy.cases.read_text(encoding="utf-8"), str(policy.cases)), policy.cases)
    try:
        file = CaseFile.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        known = suggest_nearest(str(first["loc"][-1]), [name.removesuffix("_") for name in CaseFile.model_fields])
        reason = f"unknown key{known}" if first["type"] == "extra_forbidden" else first["msg"]
        raise BundleError(reason, place=(str(policy.cases), place)) from error
    for name, case in file.fail.items():
        if case.path is None and file.path is None:
            raise BundleError(f"the fail case `{name}` names no `path`", place=(str(policy.cases),))
    return file


def required_cases(policy: Policy) -> CaseFile:
    """Return the cases of a policy.

    Raises:
        BundleError: it has none, or the file is not well formed.
    """
    file = read_cases(policy)
    if file is None:
        raise BundleError(f"`{policy.id}` has no cases", remedy="add a cases.yaml to its directory")
    return file


def no_baseline(stem: str, baselines: Baselines, place: str) -> BundleError:
    """Return the error that a case names a baseline that does not exist."""
    remedy = f"put a compliant resource into `baselines/{stem}.json` of the policies, or name the file stem of another"
    return BundleError(
        f"no baseline is called `{stem}`{suggest_nearest(stem, baselines.resources)}", place=(place,), remedy=remedy
    )


def estate(baselines: Baselines, case: Case, place: str) -> Snapshot:
    """Return the snapshot of a case: every baseline, edited.

    Raises:
        BundleError: a stem does not exist, or a stated fact is not well formed.
    """
    edits = dict(case.with_)
    if case.baseline is not None:
        edits[case.baseline] = merged(edits.get(case.baseline, {}), case.patch, keep_null=True)
    for stem in (*edits, *case.remove):
        if stem not in baselines.resources:
            raise no_baseline(stem, baselines, place)
    resources = tuple(
        merged(resource, edits.get(stem, {}))
        for stem, resource in sorted(baselines.resources.items())
        if stem not in case.remove
    )
    stated: dict[str, Any] = {name: baselines.stated.get(name, []) for name in STATED}
    stated |= {name: given for name in STATED if (given := getattr(case, name)) is not None}
    document = {
        "scope": "",
        "resources": resources,
        "incomplete": case.incomplete,
        "covers": _coverage(case, resources, place),
        **stated,
    }
    try:
        return Snapshot.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(str(part) for part in first["loc"])
        raise BundleError(f"{where}: {first['msg']}", place=(place,)) from error


def _coverage(case: Case, resources: Iterable[JsonObject], place: str) -> tuple[str, ...] | None:
    """Return what the snapshot of a case covers; None if that is everything.

    Raises:
        BundleError: an entry is not `TYPE at ID`.
    """
    if case.covers is None:
        return None
    for entry in case.covers:
        if parse_entry(entry) is None:
            raise BundleError(f"`{entry}` in `covers` is not `TYPE at ID`", place=(place,))
    unlisted = (resource for resource in resources if lowered(resource["type"]) not in SPELLED)
    return (*EVERYTHING, *covered_by(unlisted, is_list=False), *case.covers)


def _mapping(document: object, path: Path) -> Any:
    if not isinstance(document, dict):
        raise BundleError("not a mapping", place=(str(path),))
    return document
