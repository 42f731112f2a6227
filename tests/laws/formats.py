"""The same estate in two formats gives the same findings where both can carry the fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from policyeng.bundle.cases import STATED
from policyeng.evaluation.summary import by_pair
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Snapshot, lowered
from policyeng.sources import Inputs, normalize_context, read_inputs
from policyeng.sources.arm_resource import service_made, with_attachment
from policyeng.sources.parsed import Placed
from policyeng.sources.private_endpoints import add_connections
from policyeng.verify.laws.law import Trial, Violation, format_finding
from tests.writers import WRITERS, sayable
from tests.writers.arm_template import SCOPE
from tests.writers.azure_cli_values import seconds

#: The workspace of files that do not name one; the writers take no other.
_WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws-ml"
#: What is stated in addition to the resources, the same in every format.
_STATED = ("scope", "taken_at", *STATED, "incomplete")
_NAME = "formats"
#: Formats of what is deployed, which say themselves what private endpoints connect.
_DEPLOYED = ("az-output", "resource-graph")
#: Removes quotes and spaces.
_NO_SPELLING = str.maketrans("", "", "'\" ")


class Compared(NamedTuple):
    """What became of an estate in a format.

    Attributes:
        decided: how many findings both formats decide, and alike.
        different: by policy, type and id, the finding in ARM shape and in the format; None where there is none.
        refused: why the format's reader did not take what was written; empty where it did.
    """

    decided: int = 0
    different: Sequence[tuple[Finding | None, Finding | None]] = ()
    refused: str = ""


def compared(trial: Trial, name: str) -> Compared:
    """Write an example's resources in a format, read them back, and evaluate both."""
    resources, files = written(name, trial.snapshot.resources)
    if not resources:
        return Compared()
    inputs = _read(files)
    for problem in inputs.problems:
        if problem.level == "error":  # refused with a message, so no verdict depends on it
            return Compared(refused=problem.message)
    stated = {field: getattr(trial.snapshot, field) for field in _STATED}
    before = tuple(resources) if name in _DEPLOYED else _connected(resources)
    arm = Snapshot(resources=before).model_copy(update=stated)
    other = inputs.snapshot.model_copy(update=stated)
    return _differences(trial.evaluate(arm), trial.evaluate(other))


def _connected(resources: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """The resources with the connections that private endpoints among them create."""
    named = {lowered(entry["id"]): entry for entry in resources if isinstance(entry.get("id"), str)}
    placed = {key: Placed(entry, "", service_made(entry["type"])) for key, entry in named.items()}
    connected = {id(named[key]): entry.resource for key, entry in add_connections(placed).items()}
    return tuple(connected.get(id(entry), entry) for entry in resources)


def written(name: str, estate: Sequence[JsonObject]) -> tuple[list[JsonObject], dict[str, bytes]]:
    """The resources of an estate that a format can state, as they are before deployment, and their files."""
    outputs: list[JsonObject] = []
    files: dict[str, bytes] = {}
    before = [_before_deployment(entry) for entry in estate if isinstance(entry.get("type"), str)]
    for number, writer in enumerate(WRITERS[name]):
        own = [entry for entry in before if sayable(writer, entry)]
        outputs += own
        if own:
            files |= {f"{number}/{file}": content for file, content in writer.write(own).items()}
    return outputs, files


def _before_deployment(resource: JsonObject) -> JsonObject:
    """Return a resource without what only the service sets, but for what follows from the rest, and without nulls.

    A file that describes a resource omits what it does not state, such as a list of no identities; null is what the
    service returns. No format describes a resource without its name, so a missing name is taken from the id.
    """
    pointers = {*service_made(resource["type"]), "/properties/isAttachedCompute"}
    named = {"name": resource["id"].rpartition("/")[2]} if isinstance(resource.get("id"), str) else {}
    return with_attachment(
        named
        | {
            key: {
                inner: value
                for inner, value in part.items()
                if f"/{key}/{inner}" not in pointers and (value or inner != "userAssignedIdentities")
            }
            if isinstance(part, dict)
            else part
            for key, part in zip(resource, map(_stated, resource.values()), strict=True)
            if part is not None
        }
    )


def _stated(value: object) -> object:
    """A value without nulls in objects."""
    if isinstance(value, dict):
        return {key: _stated(inner) for key, inner in value.items() if inner is not None}
    return [_stated(inner) for inner in value] if isinstance(value, list) else value


def _read(files: Mapping[str, bytes]) -> Inputs:
    context = normalize_context(SCOPE, _WORKSPACE, {})
    if len(files) == 1:
        return read_inputs(["-"], stdin=next(iter(files.values())), context=context)
    with TemporaryDirectory() as folder:
        for file, content in files.items():
            path = Path(folder, file)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return read_inputs([folder], context=context)


def _differences(arm: Evaluation, other: Evaluation) -> Compared:
    """What both decide; where the format is unknown it states why, and its own tests check what it cannot carry."""
    ours, theirs = by_pair(arm), by_pair(other)
    decided, different = 0, []
    for pair in sorted({*ours, *theirs}):
        one, twin = ours.get(pair), theirs.get(pair)
        if twin is not None and twin.outcome is Outcome.UNKNOWN:
            continue
        if one is not None and twin is not None and _agree(one, twin):
            decided += 1
        else:
            different.append((one, twin))
    return Compared(decided, different)


def _agree(arm: Finding, other: Finding) -> bool:
    """Whether a format decides as ARM does; of a failure it may leave a part unknown, and then report less of it."""
    ours, theirs = _denials(arm), _denials(other)
    return arm.outcome is other.outcome and (theirs <= ours if other.unknowns else theirs == ours)


def _denials(finding: Finding) -> Counter[str]:
    """The denials; `"1"` where a number belongs, and words in other letters or with spaces, are read as ARM means them.

    ARM states the region of a compute in two places, and others in one. Two minutes may be 120 seconds.
    """
    denials = [
        {
            **denial.model_dump(mode="json"),
            "actual": _same_for_same_length(str(denial.actual)).translate(_NO_SPELLING),
            "path": "/location" if denial.path == "/properties/computeLocation" else denial.path,
        }
        for denial in finding.denials
    ]
    return Counter(lowered(str(denial)) for denial in denials)


def _same_for_same_length(text: str) -> str:
    """A duration by its seconds, any other text as it is."""
    try:
        return f"{seconds(text)} s"
    except ValueError:
        return text


def violated(trial: Trial) -> Violation | None:
    """What another format decides otherwise; one of those that decide anything."""
    chance = trial.random(_NAME)
    for name in chance.sample(sorted(WRITERS), len(WRITERS)):
        outcome = compared(trial, name)
        if outcome.different:
            return _difference(name, *outcome.different[0])
        if outcome.refused:
            trial.grounds.remark(_NAME, f"examples that `{name}` refuses aloud", 1)
        if outcome.decided:
            trial.grounds.remark(_NAME, f"findings compared with `{name}`", outcome.decided)
            return None
    trial.grounds.remark(_NAME, "examples of which no format states what is decided", 1)
    return None


def _difference(name: str, arm: Finding | None, other: Finding | None) -> Violation:
    shown = arm or other
    lines = (f"in ARM shape: {format_finding(arm)}", f"as {name}: {format_finding(other)}")
    message = "another format is evaluated otherwise than the same in ARM shape"
    return Violation(message, shown.policy if shown else "", shown.resource if shown else "", lines)
