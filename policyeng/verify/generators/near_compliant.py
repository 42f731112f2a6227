"""Generate resources that are compliant but for few edits, and edits of the fields that policies read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED
from policyeng.bundle.header import Verdict
from policyeng.facts.ids import workspace_of
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.parsing.json_pointer import merged
from policyeng.verify.generators.estates import (
    DOCUMENT,
    STATEMENTS,
    EstateGenerator,
    Scene,
    copied_object,
    fits,
    in_second_group,
    is_selected,
    renamed,
)
from policyeng.verify.generators.json_mutations import (
    Json,
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    edit_somewhere,
    place_of,
    put_value,
    remove,
)

_ABOVE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
#: The steps to numbers next to another one.
_NEAR = (0, 0, 1, -1, 1, -1, 1, -1, 0.001, -0.001)


def subject(random: Random, estates: EstateGenerator, focus: Policy, suffix: str) -> JsonObject:
    """Return a resource that a policy selects, spelled as in its header; the caller may change it."""
    target = random.choice(focus.header.judges)
    if target.type in STATEMENTS or target.type == DOCUMENT:
        return draw_resource(random, estates, random.choice(estates.types or [WORKSPACE_TYPE]))
    known = [entry for entry in estates.by_type.get(lowered(target.type), ()) if fits(target, entry)]
    if known and draw_boolean(random, 0.8):
        return renamed(random.choice(known), suffix)
    resource = draw_resource(random, estates, target.type)
    for pointer, allowed in target.where.items():
        put_value(resource, place_of(random, resource, pointer), random.choice(allowed))
    return resource


def draw_resource(random: Random, estates: EstateGenerator, kind: str) -> JsonObject:
    """Return a resource of a type: a renamed baseline, or an empty one with a suitable id."""
    if known := estates.by_type.get(lowered(kind)):
        return renamed(random.choice(known), f"-{random.randrange(6)}")
    namespace, *kinds = kind.split("/")
    names = "".join(f"/{part}/{'ws' if part == 'workspaces' else f'x{random.randrange(6)}'}" for part in kinds)
    identity = f"{_ABOVE}/providers/{namespace}{names or '/x'}"
    return {"id": identity, "name": identity.rpartition("/")[2], "type": kind, "properties": {}}


def edit(
    random: Random,
    estates: EstateGenerator,
    policy: Policy,
    resources: list[JsonObject],
    position: int,
    pointer: str = "",
) -> None:
    """Change a field that a policy reads in a resource or its workspace, or any field if it reads none.

    The resource is copied first, and replaced in the list. `pointer` is a place that the policy reads; by default, a
    random one.
    """
    words = estates.vocabulary.words[policy.id]
    pointers = words.pointers if draw_boolean(random, 0.9) or not words.narrowing else words.narrowing
    pointer = pointer or random.choice(pointers or ("/properties",))
    if pointer.startswith("workspace:"):
        position = _workspace_of(resources, position)
    holder = resources[position] = copied_object(resources[position])
    if not pointers:  # every place is equivalent
        edit_somewhere(random, holder)
        return
    place = place_of(random, holder, pointer.removeprefix("workspace:"))
    if not place or place[0] in ("id", "type"):
        return
    if draw_boolean(random, 0.15):
        remove(holder, place)
    else:
        put_value(holder, place, value(random, estates, policy, pointer))


def _workspace_of(resources: list[JsonObject], position: int) -> int:
    """Return the position of the workspace of a resource, or its own if there is none."""
    home = workspace_of(str(resources[position]["id"])) or ""
    homes = (other for other, entry in enumerate(resources) if lowered(str(entry["id"])) == home)
    return next(homes, position) if home else position


def value(random: Random, estates: EstateGenerator, policy: Policy, pointer: str) -> Json:
    """Return a value for a place: one from elsewhere, a word of the policy, one next to these, or an odd one."""
    words = estates.vocabulary.words[policy.id]
    near, standing = words.near.get(pointer, ()), words.standing.get(pointer, ())
    kind = random.randrange(10)
    if near and kind < (4 if standing else 7):
        return draw_nearby(random, random.choice(near))
    if standing and kind < 7:
        word = copied(random.choice(standing))
        return word if kind < 5 else draw_nearby(random, word)
    if not near and words.own and kind < 6:
        return draw_nearby(random, random.choice(words.own))
    if kind < 9:
        word = copied(random.choice(estates.spoken(random, policy) or [draw_odd_value(random)]))
        return word if draw_boolean(random, 0.8) else altered(random, word)
    return draw_odd_value(random)


def draw_nearby(random: Random, word: Json) -> Json:
    """Return a value or one next to it: a little more or less, the other boolean, sometimes spelled differently."""
    if isinstance(word, bool):
        return word if draw_boolean(random, 0.5) else not word
    if isinstance(word, int | float):
        return word + random.choice(_NEAR)
    return copied(word) if draw_boolean(random, 0.7) else altered(random, copied(word))


#: How many scenes of other policies are tried in addition to one of the policy in focus.
_OTHERS = (4, 6, 6, 8, 8, 10)
#: The weight of a policy that does not pass on the baselines, when other policies are chosen.
_NOT_PASSING_WEIGHT = 2
#: The probability that a baseline that no scene needs is left out.
_LEFT_OUT = (0.0, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0)
#: The weights of outcomes of cases: for policies that pass on the baselines, and for the others.
_WANTED: dict[bool, dict[Verdict, float]] = {
    True: {"fail": 0.75, "pass": 0.13, "unknown": 0.08, "not_judged": 0.04},
    False: {"fail": 0.46, "pass": 0.44, "unknown": 0.06, "not_judged": 0.04},
}
#: How often another scene is drawn in place of one that conflicts with the others.
_TRIALS = 3


@dataclass
class SceneStage:
    """The scenes that are combined in one snapshot.

    Attributes:
        as_of: the clock of all scenes; None while no scene has set it.
    """

    as_of: datetime | None = None
    edits: dict[str, JsonObject] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    stated: dict[str, list[JsonObject]] = field(default_factory=dict)
    parameters: dict[str, JsonObject] = field(default_factory=dict)

    def takes(self, scene: Scene) -> bool:
        """Check whether a scene is compatible with the others in its clock and in the baselines needed or left out."""
        apart = self.removed & scene.needs or scene.removed & self.needs
        return not apart and self.as_of in (None, scene.as_of) and not self._contradicted(scene)

    def _contradicted(self, scene: Scene) -> bool:
        """Check whether earlier scenes have another statement with the same id."""
        for kind, entries in scene.stated.items():
            known = {_key(entry): entry for entry in self.stated.get(kind, ())}
            if any(known.get(_key(entry), entry) != entry for entry in entries):
                return True
        return False

    def play(self, policy: Policy, scene: Scene) -> None:
        """Add a scene; at a shared place the later scene wins, and statements are merged by id."""
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


def draw_near_compliant(
    random: Random, estates: EstateGenerator, focus: Policy
) -> tuple[JsonObject, dict[str, JsonObject], datetime]:
    """Return a document, the parameters and the clock of a snapshot with a policy in focus."""
    policies = _choose_policies(random, estates, focus)
    stage = _build_stage(random, estates, policies)
    stems = _select_stems(random, estates, stage)
    baselines = estates.baselines.resources
    resources = [
        merged(baselines[stem], stage.edits[stem]) if stem in stage.edits else baselines[stem] for stem in stems
    ]
    _add_resources(random, estates, policies, resources)
    for _ in range(random.choice((0, 0, 1, 2, 3)) if resources else 0):
        _edit(random, estates, policies, resources)
    if draw_boolean(random, 0.1):
        resources += in_second_group([resource for resource in resources if draw_boolean(random, 0.5)])
    random.shuffle(resources)
    document: JsonObject = {"resources": unique(resources)}
    document |= {
        kind: stage.stated[kind] if kind in stage.stated else _baseline_statements(estates, kind, stems)
        for kind in STATED
    }
    return document, stage.parameters, stage.as_of or DEFAULT_AS_OF


def unique(resources: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the resources, the first one of each id."""
    return list({lowered(str(resource["id"])): resource for resource in resources}.values())


def _choose_policies(random: Random, estates: EstateGenerator, focus: Policy) -> list[Policy]:
    """Return the policy in focus and some others, preferably those that do not pass on the baselines."""
    others = [
        policy
        for policy in estates.bundle.policies
        for _ in range(1 if policy.id in estates.at_rest else _NOT_PASSING_WEIGHT)
    ]
    drawn = random.sample(others, min(random.choice(_OTHERS), len(others)))
    return list({policy.id: policy for policy in (focus, *drawn)}.values())


def _build_stage(random: Random, estates: EstateGenerator, policies: Sequence[Policy]) -> SceneStage:
    """Return a stage with a scene of every policy that has cases, as far as they are compatible."""
    stage = SceneStage()
    for policy in policies:
        scenes = estates.scenes.get(policy.id, ())
        for _ in range(_TRIALS if scenes else 0):
            scene = random.choice(_choose_scenes(random, scenes, at_rest=policy.id in estates.at_rest))
            if stage.takes(scene):
                stage.play(policy, scene)
                break
    return stage


def _choose_scenes(random: Random, scenes: Sequence[Scene], *, at_rest: bool) -> Sequence[Scene]:
    """Return the scenes of a random outcome; all scenes if none has it."""
    left = random.random()
    for verdict, share in _WANTED[at_rest].items():
        left -= share
        if left < 0:
            return [scene for scene in scenes if scene.verdict == verdict] or scenes
    return scenes


def _select_stems(random: Random, estates: EstateGenerator, stage: SceneStage) -> list[str]:
    """Return the stems of the baselines, without some that nothing needs."""
    share = random.choice(_LEFT_OUT)
    known = [stem for stem in estates.baselines.resources if stem not in stage.removed]
    return [stem for stem in known if stem in stage.needs or not draw_boolean(random, share)]


def _baseline_statements(estates: EstateGenerator, kind: str, stems: Collection[str]) -> list[JsonObject]:
    """Return the statements of a kind about the remaining baselines."""
    entries = estates.usual[kind]
    return [entry for entry, named in entries if named.issubset(stems)]


def _add_resources(
    random: Random, estates: EstateGenerator, policies: Sequence[Policy], resources: list[JsonObject]
) -> None:
    """Add copies of selected resources, and for policies without cases resources with targeted edits."""
    for number, policy in enumerate(policies):
        if policy.id in estates.scenes:
            if number == 0 and draw_boolean(random, 0.2):
                peers = [resource for resource in resources if is_selected(policy, resource)]
                resources += [renamed(random.choice(peers), f"-c{copy}") for copy in range(2)] if peers else []
            continue
        for copy in range(random.choice((2, 3, 4, 6)) if number == 0 else 1):
            resources.append(subject(random, estates, policy, f"-f{number}{copy}"))
            for pointer in estates.vocabulary.words[policy.id].pointers:
                if draw_boolean(random, 0.9):
                    edit(random, estates, policy, resources, len(resources) - 1, pointer)


def _edit(random: Random, estates: EstateGenerator, policies: Sequence[Policy], resources: list[JsonObject]) -> None:
    """Make one more edit: of a resource that a policy selects where the policy reads, or anywhere."""
    policy = random.choice(policies)
    selected = [position for position, resource in enumerate(resources) if is_selected(policy, resource)]
    if selected and draw_boolean(random, 0.8):
        edit(random, estates, policy, resources, random.choice(selected))
    else:
        position = random.randrange(len(resources))
        resources[position] = copied_object(resources[position])
        edit_somewhere(random, resources[position])


def _key(entry: JsonObject) -> bytes:
    """Return the key of a statement among those of its kind: its id, or all of it."""
    return str(entry["id"]).encode() if "id" in entry else orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
