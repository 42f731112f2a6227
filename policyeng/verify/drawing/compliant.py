"""Nearly compliant estates: the compliant one with a few edits, most of them scenes that cases of policies make.

A scene is what a policy's author holds to be on one side of a line, so a few of them make an estate that some policies
deny and most do not; directed edits move what they made just over the line, or back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.header import Verdict
from policyeng.models import JsonObject, lowered
from policyeng.verify.cases import DEFAULT_AS_OF, merged
from policyeng.verify.drawing.directed import edit, subject
from policyeng.verify.drawing.edits import edit_somewhere, happens
from policyeng.verify.drawing.estates import Estates, renamed, takes
from policyeng.verify.drawing.scenes import STATED, Scene

_GROUP = re.compile(r"(?i)(/resourceGroups/[^/\"]+)")
#: How many scenes of other policies are tried beside one of the policy in focus.
_OTHERS = (1, 2, 3, 3, 4, 5, 6)
#: How many of the baselines that no scene needs are left out.
_LEFT_OUT = (0.0, 0.5, 0.7, 0.7, 0.9, 0.9, 1.0)
#: How often which outcome of a case is wanted.
_WANTED: tuple[tuple[Verdict, float], ...] = (("fail", 0.6), ("pass", 0.28), ("unknown", 0.08), ("not_judged", 0.04))
#: A further scene that does not go with the others is drawn anew so often.
_TRIALS = 3


@dataclass
class Stage:
    """The scenes that are played in one estate.

    Attributes:
        as_of: the clock of all; None while no scene has set it.
        edited: the stems that scenes edit.
    """

    as_of: datetime | None = None
    edits: dict[str, JsonObject] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    stated: dict[str, list[JsonObject]] = field(default_factory=dict)
    parameters: dict[str, JsonObject] = field(default_factory=dict)

    def takes(self, scene: Scene) -> bool:
        """Whether a scene goes with the others: by its clock, and by what is there and what is not."""
        apart = self.removed & scene.needs or scene.removed & self.needs
        return not apart and (self.as_of is None or self.as_of == scene.as_of)

    def play(self, policy: Policy, scene: Scene) -> None:
        """Add a scene; of two that speak of one place the later one counts, and statements are joined by id."""
        self.as_of = scene.as_of
        for stem, patch in scene.edits.items():
            self.edits[stem] = merged(self.edits.get(stem, {}), patch, keep_null=True)
        self.removed |= scene.removed
        self.needs |= scene.needs
        for kind, entries in scene.stated.items():
            joined = {_key(entry): entry for entry in (*self.stated.get(kind, ()), *entries)}
            self.stated[kind] = list(joined.values())
        if scene.parameters:
            self.parameters[policy.id] = scene.parameters


def nearly_compliant(
    random: Random, estates: Estates, focus: Policy
) -> tuple[JsonObject, dict[str, JsonObject], datetime]:
    """A document, the parameters and the clock of an estate with a policy in focus."""
    others = random.sample(estates.bundle.policies, min(random.choice(_OTHERS), len(estates.bundle.policies)))
    policies = [focus, *(policy for policy in others if policy.id != focus.id)]
    stage = _staged(random, estates, policies)
    resources = _resources(random, estates, stage)
    _more(random, estates, policies, resources)
    for _ in range(random.choice((0, 0, 1, 2, 3)) if resources else 0):
        _edit(random, estates, policies, resources)
    if happens(random, 0.1):
        chosen = orjson.dumps([resource for resource in resources if happens(random, 0.5)]).decode()
        resources += orjson.loads(_GROUP.sub(r"\1-2", chosen))
    random.shuffle(resources)
    usual = estates.stated()
    document: JsonObject = {"resources": unique(resources)}
    document |= {kind: stage.stated.get(kind, usual[kind]) for kind in STATED}
    return document, stage.parameters, stage.as_of or DEFAULT_AS_OF


def unique(resources: Sequence[JsonObject]) -> list[JsonObject]:
    """The resources without two of one id."""
    return list({lowered(str(resource["id"])): resource for resource in resources}.values())


def _staged(random: Random, estates: Estates, policies: Sequence[Policy]) -> Stage:
    """A scene of every policy that has cases, as far as they go together."""
    stage = Stage()
    for policy in policies:
        scenes = estates.scenes.get(policy.id, ())
        for _ in range(_TRIALS if scenes else 0):
            scene = random.choice(_wanted(random, scenes))
            if stage.takes(scene):
                stage.play(policy, scene)
                break
    return stage


def _wanted(random: Random, scenes: Sequence[Scene]) -> Sequence[Scene]:
    """The scenes of an outcome; all of them where none has it."""
    left = random.random()
    for verdict, share in _WANTED:
        left -= share
        if left < 0:
            return [scene for scene in scenes if scene.verdict == verdict] or scenes
    return scenes


def _resources(random: Random, estates: Estates, stage: Stage) -> list[JsonObject]:
    """The baselines after the edits, without some that nothing needs; they share their parts with the baselines."""
    share = random.choice(_LEFT_OUT)
    return [
        merged(resource, stage.edits[stem]) if stem in stage.edits else resource
        for stem, resource in estates.baselines.resources.items()
        if stem not in stage.removed and (stem in stage.needs or not happens(random, share))
    ]


def _more(random: Random, estates: Estates, policies: Sequence[Policy], resources: list[JsonObject]) -> None:
    """More of what is judged: copies, and for policies without cases resources edited where they look."""
    for number, policy in enumerate(policies):
        if policy.id in estates.scenes:
            if number == 0 and happens(random, 0.3):
                alike = [resource for resource in resources if takes(policy, resource)]
                resources += [renamed(random.choice(alike), f"-c{copy}") for copy in range(2)] if alike else []
            continue
        for copy in range(random.choice((1, 2, 3)) if number == 0 else 1):
            resources.append(subject(random, estates, policy, f"-f{number}{copy}"))
            while happens(random, 0.6):
                edit(random, estates, policy, resources, len(resources) - 1)


def _edit(random: Random, estates: Estates, policies: Sequence[Policy], resources: list[JsonObject]) -> None:
    """One more edit: of something that one of the policies judges where it looks, or anywhere."""
    policy = random.choice(policies)
    judged = [position for position, resource in enumerate(resources) if takes(policy, resource)]
    if judged and happens(random, 0.8):
        edit(random, estates, policy, resources, random.choice(judged))
    else:
        position = random.randrange(len(resources))
        resources[position] = orjson.loads(orjson.dumps(resources[position]))
        edit_somewhere(random, resources[position])


def _key(entry: JsonObject) -> bytes:
    """What tells a statement from others of its kind: its id, or all of it."""
    return str(entry["id"]).encode() if "id" in entry else orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
