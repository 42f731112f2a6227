"""Random examples for a bundle: a snapshot, the parameters it is judged with, and the clock.

The estates range from wild (anything under a judged type) over plausible (baselines, cut down, multiplied and edited)
to nearly compliant (the estate of one of the bundle's own cases with a few edits).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import count
from random import Random

from policyeng.bundle import Bundle, Policy
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.verify.cases import DEFAULT_AS_OF
from policyeng.verify.drawing.edits import happens
from policyeng.verify.drawing.estates import STATEMENTS, Estates
from policyeng.verify.drawing.observations import Sight, observed
from policyeng.verify.drawing.schemas import fitting
from policyeng.verify.drawing.statements import Asked, stated

_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Example:
    """Something to judge.

    Attributes:
        document: a native snapshot without `snapshotVersion`; not to be changed.
        parameters: by policy id, what replaces the defaults; every value fits its schema.
    """

    document: JsonObject
    parameters: Mapping[str, JsonObject]
    as_of: datetime

    @property
    def snapshot(self) -> Snapshot:
        """The document as a snapshot, without passing through a reader."""
        return Snapshot.model_validate({**self.document, "resources": tuple(self.document["resources"])})


@dataclass(frozen=True)
class Examples:
    """Draws examples for a bundle, which has a policy at least: `Examples(bundle).drawn(Random(7))`."""

    bundle: Bundle

    def drawn(self, random: Random, focus: Policy | None = None) -> Example:
        """One example, with a policy in focus or any; the same generator state gives the same example."""
        focus, kind = focus or random.choice(self.bundle.policies), random.random()
        given: JsonObject = {}
        as_of = DEFAULT_AS_OF
        if kind > 0.6 and focus.id in self._estates.cases:
            case, document = self._estates.of_case(random, focus)
            given, as_of = case.parameters, case.as_of or as_of
        elif kind > 0.08:
            document = self._estates.of_baselines(random, focus)
        else:
            document = self._estates.wild(random, focus)
        if happens(random, 0.5):
            as_of = self.moment(random)
        judges_statements = bool(STATEMENTS & {judged.type for judged in focus.header.judges})
        if judges_statements or happens(random, 0.4):
            own = self._estates.vocabulary.words[focus.id].own
            document |= stated(random, document, Asked(self._words, as_of, focus if judges_statements else None, own))
        if happens(random, 0.4):
            document |= observed(random, document, self._sight(focus, document, as_of), self.bundle.facts)
        principals = {lowered(entry["id"]): entry for entry in document.get("principals", ())}
        document["principals"] = list(principals.values())  # a reader takes nobody twice
        if not given and focus.header.parameters and happens(random, 0.5):
            given = self._parameters(random, focus)
        return Example(document, self.parameters(random, {focus.id: given} if given else {}), as_of)

    def numbered(self, seed: int, number: int) -> Example:
        """The example of a number, from 0, among those of a seed: what `examples_of` gives at that place."""
        turns, place = list(self.bundle.policies), number % len(self.bundle.policies)
        # The text is hashed by `random` itself, so neighbouring seeds share nothing.
        Random(f"{seed}/turns/{number - place}").shuffle(turns)  # noqa: S311  # nothing here is secret
        return self.drawn(Random(f"{seed}/{number}"), turns[place])  # noqa: S311  # the same

    def moment(self, random: Random) -> datetime:
        """A clock: near a moment at which facts or approvals change, or any in ten years."""
        if self._moments and happens(random, 0.7):
            near = random.choice((-_DAY, -1.0, -0.000001, 0.0, 0.000001, 1.0, _DAY))
            days = random.choice((0, 0, 0, -180, -179, -181, -30))
            return random.choice(self._moments) + timedelta(days=days, seconds=near)
        return datetime(2021, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(int(10 * 365 * _DAY)))

    def parameters(self, random: Random, given: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        """Parameters for some policies, beside those that are given."""
        made = dict(given)
        for policy in self.bundle.policies:
            if policy.header.parameters and policy.id not in made and happens(random, 0.15):
                made[policy.id] = self._parameters(random, policy)
        return made

    def _sight(self, focus: Policy, document: JsonObject, as_of: datetime) -> Sight:
        words = self._estates.vocabulary.words[focus.id].own
        numbers = [word for word in words if isinstance(word, int | float) and not isinstance(word, bool)]
        subjects = self._estates.subjects(focus, document["resources"])
        return Sight(self._estates.observations(focus), subjects, numbers, as_of)

    def _parameters(self, random: Random, policy: Policy) -> JsonObject:
        """Parameters of one policy, as one of its cases has them or within their schemas."""
        stated_ones = [case.parameters for case, _ in self._estates.cases.get(policy.id, ()) if case.parameters]
        if stated_ones and happens(random, 0.4):
            return random.choice(stated_ones)
        words = self._estates.spoken(random, policy)
        return {
            name: fitting(random, schema, words)
            for name, schema in policy.header.parameters.items()
            if happens(random, 0.7)
        }

    @cached_property
    def _estates(self) -> Estates:
        return Estates(self.bundle)

    @cached_property
    def _moments(self) -> list[datetime]:
        times = [
            datetime.fromisoformat(text)
            for approval in self._estates.baselines.stated.get("approvals", ())
            for name in ("grantedAt", "expiresAt")
            if isinstance(text := approval.get(name), str)
        ]
        return sorted({*self._estates.vocabulary.moments, *(time for time in times if time.tzinfo)})

    @cached_property
    def _words(self) -> list[str]:
        spoken = list(self._estates.vocabulary.words.values())
        words = {word for entry in spoken for word in (*entry.own, *entry.borrowed) if isinstance(word, str)}
        return sorted(words | {name for entry in spoken for table in entry.tables for name in table[:40]})


def examples_of(bundle: Bundle, seed: int) -> Iterator[Example]:
    """Examples without end: the same ones for the same seed and bundle, however many are taken.

    The policies take turns in focus, so that no run leaves one out before it comes to another again.
    """
    source = Examples(bundle)
    return (source.numbered(seed, number) for number in count())
