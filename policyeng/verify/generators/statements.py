"""Random statements of an organization: approvals, workloads and evidence that the models accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import get_args

from policyeng.bundle import Policy
from policyeng.bundle.header import TargetType
from policyeng.models import JsonObject, Purpose, Target
from policyeng.models.documents import Accelerator, Cadence, Feature
from policyeng.verify.generators.json_mutations import ODD_TEXTS, Json, draw_boolean

_CHOICES = {"purpose": Purpose, "target": Target, "accelerator": Accelerator, "cadence": Cadence}
_SCOPE_LENGTHS = (2, 4, 8, 8, 4, 2, 6, 10)
#: Tags that policies may read, and their values.
TAGS = ("environment", "stage", "data-classification", "Environment", "owner")
_PEOPLE = ("ann@contoso.example", " Ann@CONTOSO.example", "77777777-7777-7777-7777-777777777777", "bob", "")
TAG_VALUES = ("dev", "test", " Production", "STAGING", "regulated", "Confidential", "internal", "")


@dataclass(frozen=True, slots=True)
class StatementChoice:
    """The requirements for statements.

    Attributes:
        words: the words of the policies.
        as_of: the evaluation clock.
        focus: a policy that evaluates statements; most of them should meet its conditions.
        own: the words of the policy in focus.
        policies: the ids that evidence can be for.
    """

    words: Sequence[str]
    as_of: datetime
    focus: Policy | None
    own: Sequence[Json] = ()
    policies: Sequence[str] = ()


def draw_statements(random: Random, document: JsonObject, asked: StatementChoice) -> JsonObject:
    """Return a few approvals, workloads and entries of evidence for a document, with its own sometimes in addition."""
    workloads = random.randrange(4, 12) if asked.focus else random.randrange(4)
    made: JsonObject = {
        "approvals": [_approval(random, number, document, asked) for number in range(random.randrange(4))],
        "workloads": [_workload(random, number, document, asked) for number in range(workloads)],
    }
    own = Random(repr(made))  # noqa: S311  # so that a seed gives the same approvals and workloads as before
    made["evidence"] = [_evidence(own, number, document, asked) for number in range(own.randrange(4))]
    for name, entries in made.items():
        entries += [entry for entry in document.get(name, ()) if draw_boolean(random, 0.5)]
    if draw_boolean(random, 0.3):
        made["takenAt"] = _time(random, asked.as_of)
    return made


def _approval(random: Random, number: int, document: JsonObject, asked: StatementChoice) -> JsonObject:
    scope = _identity(random, document)
    if draw_boolean(random, 0.8):
        scope = "/".join(scope.split("/")[: random.choice(_SCOPE_LENGTHS) + 1])
    approval: JsonObject = {
        "id": f"R-{number}",
        "kind": random.choice(("vmSeries", "vmSeries", "vmseries", "VMSERIES ", "quota", "")),
        "series": _word(random, asked.words, ("M", "m", "NCsv3", " ND ", "NDv2", "FSv2")),
        "scope": random.choice((scope, scope, scope.upper(), f"{scope}/", f"{scope}-2", "/", "", scope[1:])),
        "status": random.choice(("granted", "granted", "granted", "requested", "denied", "revoked")),
    }
    if draw_boolean(random, 0.5):
        approval["region"] = _word(random, asked.words, ("eastus", "East US", "EASTUS ", "westeurope", "", " "))
    for name in ("grantedAt", "expiresAt"):
        if draw_boolean(random, 0.6):
            approval[name] = _time(random, asked.as_of)
    for name in ("requestedBy", "approvedBy"):
        if draw_boolean(random, 0.8):
            approval[name] = random.choice(_PEOPLE)
    return approval


def _evidence(random: Random, number: int, document: JsonObject, asked: StatementChoice) -> JsonObject:
    scope = _identity(random, document)
    subject = random.choice(asked.policies) if asked.policies else "mcsb-v1:NS-2"
    given = timedelta(days=random.choice((-400, -365, -364, -30, 0, 1)))
    clock = min(
        max(asked.as_of, datetime(3, 1, 1, tzinfo=UTC)), datetime(9990, 1, 1, tzinfo=UTC)
    )  # the calendar has an end
    expires = given + timedelta(days=random.choice((1, 30, 364, 365)))
    return {
        "id": f"E-{number}",
        "for": random.choice((subject, subject, subject.lower(), "mcsb-v1:NS-2")),
        "scope": random.choice(("-", scope, scope.upper(), "/".join(scope.split("/")[:3]), f"{scope}-2")),
        "statement": "a restart was tested",
        "givenBy": random.choice(_PEOPLE[:4]),
        "givenAt": (clock + given).isoformat(),
        "expiresAt": (clock + expires).isoformat(),
    }


def _time(random: Random, as_of: datetime) -> str:
    """Return a moment near the clock, or as far from it as the calendar allows."""
    if draw_boolean(random, 0.1):
        return random.choice(
            ("0001-01-01T00:00:00Z", "1677-12-31T23:59:59Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59Z")
        )
    seconds = random.choice((0.0, 0.000001, -0.000001, 1.0, -1.0, 86400.0, -86400.0, 3.2e7, -3.2e7))
    text = (as_of + timedelta(seconds=seconds)).isoformat()
    return text.replace("+00:00", "Z") if draw_boolean(random, 0.7) else text


def _workload(random: Random, number: int, document: JsonObject, asked: StatementChoice) -> JsonObject:
    workload: JsonObject = {"id": f"w-{number}"}
    for name, kind in _CHOICES.items():
        if draw_boolean(random, 0.85):
            workload[name] = _one_of(random, get_args(kind), asked.own)
    if asked.focus and draw_boolean(random, 0.7):
        workload |= _narrowed(random, asked.focus)
    if draw_boolean(random, 0.8):
        workload["workspaceId"] = _workspace(random, document)
    if draw_boolean(random, 0.3):
        workload["sourceId"] = _identity(random, document)
    if draw_boolean(random, 0.6):
        workload["tags"] = {
            random.choice(TAGS): _word(random, asked.words, TAG_VALUES) for _ in range(random.randrange(1, 3))
        }
    if draw_boolean(random, 0.3):
        workload["model"] = {
            "sizeGiB": random.choice((0, 0.5, 8, 1e6)),
            "memoryGiB": random.choice((0, 47.9, 48, 48.1)),
        }
    if draw_boolean(random, 0.7 if asked.focus else 0.3):
        workload["features"] = [_one_of(random, get_args(Feature), asked.own) for _ in range(random.randrange(4))]
    return workload


def _one_of(random: Random, allowed: Sequence[str], own: Sequence[Json]) -> str:
    """Return a word that the model allows, preferably one of the policy in focus."""
    spoken = [word for word in allowed if word in own]
    return random.choice(spoken) if spoken and draw_boolean(random, 0.4) else random.choice(allowed)


def _narrowed(random: Random, focus: Policy) -> JsonObject:
    """Return members with which a declared workload meets a policy's conditions, in words that the model allows."""
    judged = random.choice(
        [judged for judged in focus.header.judges if judged.type == "workload"] or [TargetType(type="x")]
    )
    chosen = {pointer[1:]: random.choice(allowed) for pointer, allowed in judged.where.items()}
    return {name: value for name, value in chosen.items() if value in get_args(_CHOICES.get(name))}


def _word(random: Random, words: Sequence[str], usual: Sequence[str]) -> str:
    kind = random.random()
    if kind < 0.75 or not words:
        return random.choice(usual)
    return random.choice(words) if kind < 0.95 else random.choice(ODD_TEXTS)


def _identity(random: Random, document: JsonObject) -> str:
    resources = document["resources"]
    return str(random.choice(resources)["id"]) if resources else "/subscriptions/s"


def _workspace(random: Random, document: JsonObject) -> str:
    spaces = [str(entry["id"]) for entry in document["resources"] if str(entry["type"]).lower().endswith("/workspaces")]
    identity = random.choice(spaces) if spaces else _identity(random, document)
    return identity.swapcase() if draw_boolean(random, 0.2) else identity
