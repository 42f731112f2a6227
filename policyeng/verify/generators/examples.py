"""Generate examples of snapshots with exemptions and parameters, from test cases and at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import count
from random import Random
from typing import Literal

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.models import Exemption, JsonObject, Snapshot, lowered
from policyeng.verify.generators.documents import (
    MOST,
    draw_arbitrary,
    draw_entries,
    draw_plausible,
    edited,
    evaluates_documents,
    fitting,
)
from policyeng.verify.generators.estates import STATEMENTS, EstateGenerator, StatementChoice, draw_statements, subjects
from policyeng.verify.generators.json_mutations import draw_boolean
from policyeng.verify.generators.near_compliant import draw_near_compliant
from policyeng.verify.generators.vocabulary import Sight, draw_observations

_SECOND = timedelta(seconds=1)
#: The possible times from the clock to the end: long active, active or expired by a second, long expired, future.
_ENDS = (
    *(timedelta(days=30), timedelta(days=30), timedelta(days=200), _SECOND, timedelta(0), -_SECOND),
    *(timedelta(days=-30), timedelta(days=400)),
)
#: The longest duration of an exemption.
_LASTS = timedelta(days=365)
_PEOPLE = ("ann@contoso.example", "bob@contoso.example", "ml-platform@contoso.example")
#: The lengths, in segments, of the scopes above a resource: subscription, resource group, workspace.
_SCOPES = (2, 4, 8)


def exemptions_of(
    random: Random, policies: Sequence[Policy], document: JsonObject, as_of: datetime
) -> tuple[Exemption, ...]:
    """Return up to six exemptions for a document that a reader of exemption files accepts."""
    ids = [str(resource["id"]) for resource in document["resources"]]
    ids += [str(entry["id"]) for kind in ("workloads", "approvals") for entry in document.get(kind, ())]
    ids = [identity for identity in ids if identity]
    exemptable = [policy for policy in policies if policy.header.exemptable]
    count = random.randrange(7) if ids and exemptable else 0
    return tuple(_exemption(random, number, random.choice(exemptable), ids, as_of) for number in range(count))


def _exemption(random: Random, number: int, policy: Policy, ids: Sequence[str], as_of: datetime) -> Exemption:
    scope = random.choice(ids)
    if scope.startswith("/") and draw_boolean(random, 0.4):
        scope = "/".join(scope.split("/")[: random.choice(_SCOPES) + 1])
    owner, approver = random.sample(_PEOPLE, 2)
    begin, end = _draw_period(random, as_of)
    return Exemption(
        id=f"E-{number}",
        policy=policy.id,
        scope=scope.upper() if draw_boolean(random, 0.1) else scope,
        category=random.choice(("waiver", "mitigated")),
        reason="the migration ends this quarter",
        owner=owner,
        approved_by=approver,
        created_at=begin,
        expires_at=end,
    )


def _draw_period(random: Random, as_of: datetime) -> tuple[datetime, datetime]:
    """Return the begin and end of an allowed duration; it begins at the clock if the calendar ends before."""
    try:
        end = as_of + random.choice(_ENDS)
        return end - random.choice((_LASTS, timedelta(days=60), _SECOND)), end
    except OverflowError:
        return (as_of - _SECOND, as_of) if as_of.year > 1 else (as_of, as_of + _SECOND)


#: The kinds of examples; an `estate` is plausible and has several workspaces with all statements and observations.
Kind = Literal["wild", "edited", "plausible", "estate", "nearly-compliant"]
#: The weight of each kind, in twentieths, if none is requested.
_MIXTURE: tuple[Kind, ...] = (
    *("nearly-compliant",) * 10,
    *("edited",) * 5,
    *("plausible",) * 3,
    *("wild", "estate"),
)
#: How many policies get random parameters.
_PARAMETERISED = (0, 0, 1, 2, 4)
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Example:
    """An input for an evaluation.

    Attributes:
        document: a native snapshot without `snapshotVersion`; must not be changed.
        parameters: values that replace the defaults, by policy id; every value fits its schema.
        exemptions: exemptions of policies of the bundle, active at the clock or not; only an `estate` has any.
    """

    document: JsonObject
    parameters: Mapping[str, JsonObject]
    as_of: datetime
    exemptions: tuple[Exemption, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        """The document as a snapshot, without going through a reader."""
        return Snapshot.model_validate({**self.document, "resources": tuple(self.document["resources"])})


@dataclass(frozen=True)
class Examples:
    """A generator of examples for a bundle with at least one policy: `Examples(bundle).drawn(Random(7))`."""

    bundle: Bundle

    def drawn(self, random: Random, focus: Policy | None = None, kind: Kind | None = None) -> Example:
        """Return an example, with the given or a random focus and kind; it depends only on the state of `random`."""
        focus = focus or random.choice(self.bundle.policies)
        example = self._drawers[random.choice(_MIXTURE) if kind is None else kind](random, focus)
        if self._evaluates_documents:
            example.document["documents"] = draw_entries(random, self._estates, focus)
        return example

    def numbered(self, seed: int, number: int, kind: Kind | None = None) -> Example:
        """Return the example with a number, from 0, of a seed, without drawing the earlier ones.

        The policies take turns in focus: each one has its turn before any has a second one.
        """
        turn, place = divmod(number, len(self.bundle.policies))
        # `random` hashes the text, so neighboring seeds share nothing.
        focus = self._turns(seed, turn)[place]
        return self.drawn(Random(f"{seed}/{number}"), focus, kind)  # noqa: S311  # nothing here is secret

    def moment(self, random: Random) -> datetime:
        """Return a clock: near a moment at which facts or approvals change, or any in ten years."""
        if self._moments and draw_boolean(random, 0.7):
            near = random.choice((-_DAY, -1.0, -0.000001, 0.0, 0.000001, 1.0, _DAY))
            days = random.choice((0, 0, 0, -180, -179, -181, -30))
            return random.choice(self._moments) + timedelta(days=days, seconds=near)
        return datetime(2021, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(int(10 * 365 * _DAY)))

    def parameters(self, random: Random, given: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        """Return parameters for some policies, in addition to those that are given."""
        made = dict(given)
        policies = self._estates.with_parameters
        for policy in random.sample(policies, min(random.choice(_PARAMETERISED), len(policies))):
            if policy.id not in made:
                made[policy.id] = self._parameters(random, policy)
        return made

    def exemptions(self, random: Random, example: Example) -> tuple[Exemption, ...]:
        """Return exemptions of the bundle's policies for resources of an example, active at its clock or not."""
        return exemptions_of(random, self.bundle.policies, example.document, example.as_of)

    @property
    def _drawers(self) -> Mapping[Kind, Callable[[Random, Policy], Example]]:
        return {
            "wild": self._wild,
            "edited": self._edited,
            "plausible": self._plausible,
            "estate": self._estate,
            "nearly-compliant": self._nearly_compliant,
        }

    def _nearly_compliant(self, random: Random, focus: Policy) -> Example:
        document, given, as_of = draw_near_compliant(random, self._estates, focus)
        if draw_boolean(random, 0.08):
            as_of = self.moment(random)
        if focus.header.parameters and focus.id not in given and draw_boolean(random, 0.1):
            given[focus.id] = self._parameters(random, focus)
        return Example(document, given, as_of)

    def _wild(self, random: Random, focus: Policy) -> Example:
        return self._surrounded(random, focus, draw_arbitrary(random, self._estates, focus))

    def _edited(self, random: Random, focus: Policy) -> Example:
        return self._surrounded(random, focus, edited(random, self._estates, focus))

    def _plausible(self, random: Random, focus: Policy) -> Example:
        workspaces = random.choice((1, 1, 2, 2, 3))
        document = draw_plausible(random, self._estates, focus, workspaces)
        return self._surrounded(random, focus, document)

    def _estate(self, random: Random, focus: Policy) -> Example:
        """Return an example of several workspaces with all statements and observations."""
        document = draw_plausible(random, self._estates, focus, random.randrange(2, MOST + 1))
        example = self._surrounded(random, focus, document, always=True)
        return replace(example, exemptions=self.exemptions(random, example))

    def _surrounded(self, random: Random, focus: Policy, document: JsonObject, *, always: bool = False) -> Example:
        """Return an example of a document with clock and parameters, and often statements and observations."""
        as_of = self.moment(random) if draw_boolean(random, 0.5) else DEFAULT_AS_OF
        evaluates_statements = bool(STATEMENTS & {target.type for target in focus.header.judges})
        if always or evaluates_statements or draw_boolean(random, 0.4):
            own = self._estates.vocabulary.words[focus.id].own
            ids = [policy.id for policy in self.bundle.policies if policy.header.evidence]
            choice = StatementChoice(self._words, as_of, focus if evaluates_statements else None, own, ids)
            document |= draw_statements(random, document, choice)
        if always or draw_boolean(random, 0.4):
            document |= draw_observations(random, document, self._sight(focus, document, as_of), self.bundle.facts)
        for name in ("approvals", "workloads", "principals", "evidence"):  # a reader refuses duplicates
            document[name] = list({lowered(str(entry["id"])): entry for entry in document.get(name, ())}.values())
        given = {focus.id: self._parameters(random, focus)} if draw_boolean(random, 0.5) else {}
        return Example(document, self.parameters(random, given if focus.header.parameters else {}), as_of)

    def _sight(self, focus: Policy, document: JsonObject, as_of: datetime) -> Sight:
        words = self._estates.vocabulary.words[focus.id].own
        numbers = [word for word in words if isinstance(word, int | float) and not isinstance(word, bool)]
        evaluated = subjects(focus, document["resources"])
        return Sight(self._estates.observations(focus), evaluated, numbers, as_of)

    def _parameters(self, random: Random, policy: Policy) -> JsonObject:
        """Return parameters of one policy, from one of its cases or from their schemas."""
        stated_ones = [scene.parameters for scene in self._estates.scenes.get(policy.id, ()) if scene.parameters]
        if stated_ones and draw_boolean(random, 0.4):
            return random.choice(stated_ones)
        words = self._estates.spoken(random, policy)
        return {
            name: fitting(random, schema, words)
            for name, schema in policy.header.parameters.items()
            if draw_boolean(random, 0.7)
        }

    def _turns(self, seed: int, turn: int) -> Sequence[Policy]:
        """Return the policies in the order of focus in a turn of a seed; the last order is cached."""
        if (seed, turn) not in self._last_turns:
            policies = list(self.bundle.policies)
            Random(f"{seed}/turns/{turn}").shuffle(policies)  # noqa: S311  # nothing here is secret
            self._last_turns.clear()
            self._last_turns[seed, turn] = policies
        return self._last_turns[seed, turn]

    @cached_property
    def _last_turns(self) -> dict[tuple[int, int], Sequence[Policy]]:
        return {}

    @cached_property
    def _evaluates_documents(self) -> bool:
        return any(map(evaluates_documents, self.bundle.policies))

    @cached_property
    def _estates(self) -> EstateGenerator:
        return EstateGenerator(self.bundle)

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
    """Yield an infinite sequence of examples, which depends only on the seed and the bundle."""
    source = Examples(bundle)
    return (source.numbered(seed, number) for number in count())
