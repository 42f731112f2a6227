"""Documents as policies of others judge them, made of what their Rego reads: Kubernetes objects, plans, anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from policyeng.bundle import Policy
from policyeng.models import JsonObject, lowered
from policyeng.strict.json_pointer import keys_of
from policyeng.verify.drawing.directed import value
from policyeng.verify.drawing.edits import Json, edit_somewhere, happens
from policyeng.verify.drawing.estates import DOCUMENT, Estates

#: The longest list that is made where a policy looks at every member of one.
_MOST = 3


def judges_documents(policy: Policy) -> bool:
    """Whether a policy judges documents rather than resources."""
    return any(lowered(judged.type) == DOCUMENT for judged in policy.header.judges)


def written(random: Random, estates: Estates, focus: Policy) -> list[JsonObject]:
    """Documents for `documents` of a snapshot: most of what the policy in focus reads, and of what others do."""
    judging = [policy for policy in estates.bundle.policies if judges_documents(policy)]
    documents = []
    for number in range(random.randrange(1, 4)):
        content: Json = {}
        policies = [focus] if judges_documents(focus) else []
        if not policies or happens(random, 0.3):
            policies.append(random.choice(judging))
        for policy in policies:
            content = _filled(random, estates, policy, content)
        if isinstance(content, dict) and content and happens(random, 0.1):
            edit_somewhere(random, content, kept=())
        documents.append({"file": f"drawn-{number}.json", "content": content})
    return documents


def _filled(random: Random, estates: Estates, policy: Policy, content: Json) -> Json:
    """A document with most of what a policy reads in it."""
    for pointer in estates.vocabulary.words[policy.id].pointers:
        if happens(random, 0.85):
            draw = partial(value, random, estates, policy, pointer)
            content = _with(random, content, keys_of(pointer), draw)
    return content


def _with(random: Random, held: Json, keys: Sequence[str], draw: Callable[[], Json]) -> Json:
    """What is held with a value where keys lead: a `*` leads to every member, of a short list where nothing is."""
    if not keys:
        return draw()
    key, *rest = keys
    if key == "*" and not isinstance(held, dict):
        members = held if isinstance(held, list) and held else [None] * random.randrange(1, _MOST + 1)
        return [_with(random, member, rest, draw) for member in members]
    inner = held if isinstance(held, dict) else {}
    named = (sorted(inner) or ["x"]) if key == "*" else [key]
    return {**inner, **{name: _with(random, inner.get(name), rest, draw) for name in named}}
