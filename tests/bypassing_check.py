"""Edits of a failing document that mean the same to Azure; `check` may find them unreadable, and never compliant.

A case that fails is written in a format, and written again with other letters, encodings, spellings of tags, forms of
numbers, orders and further members. `python -m tests.bypassing_check 10000 1` tries that many edits from a seed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

import policyeng
from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED, baselines_of, read_cases
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.facts.ids import is_at_or_under
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import normalize_context, read_inputs
from policyeng.testing.runner import prepared_cases
from tests.bypassing import leaves, objects, other_letters, with_value
from tests.laws.formats import written
from tests.writers import WRITERS
from tests.writers.arm_template import SCOPE

_STATED = ("scope", "taken_at", *STATED, "incomplete")
_WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws-ml"
_TAG = "data-classification"
#: The formats in which names are those of ARM, which reads them without case.
_ARM = ("native", "rest", "resource-graph", "arm-template")


@dataclass(frozen=True)
class Failing:
    """A case that fails, of one policy."""

    name: str
    bundle: Bundle
    snapshot: Snapshot
    as_of: datetime
    parameters: dict[str, JsonObject]

    def exit_code(self, files: dict[str, bytes]) -> int:
        """What `check` exits with for files with the resources of the case."""
        with TemporaryDirectory() as folder:
            paths = [Path(folder, file) for file in files]
            for path, content in zip(paths, files.values(), strict=True):
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            inputs = read_inputs(paths, context=normalize_context(SCOPE, _WORKSPACE, {}))
        snapshot = inputs.snapshot.model_copy(update={field: getattr(self.snapshot, field) for field in _STATED})
        options = EvaluationOptions(self.as_of, parameters=self.parameters, problems=inputs.problems)
        return evaluate(self.bundle, snapshot, options).exit_code

    def smaller(self, identity: str) -> Failing:
        """The same with the resource and its workspace alone, where that fails, too."""
        kept = [one for one in self.snapshot.resources if is_at_or_under(identity, one["id"])]
        small = replace(self, snapshot=self.snapshot.model_copy(update={"resources": tuple(kept)}))
        return small if kept and small.exit_code(in_format("native", kept)) == 1 else self


def in_format(name: str, resources: Sequence[JsonObject]) -> dict[str, bytes]:
    """The files with resources in a format; empty where it can state none of them."""
    if name == "native":
        return {"in.json": orjson.dumps({"snapshotVersion": 1, "resources": resources})}
    if name == "rest":
        return {"in.json": orjson.dumps({"value": resources})}
    return written(name, resources)[1]


# ---------------------------------------------------------------- edits of resources

Editing = Callable[[Random, JsonObject], JsonObject | None]
EDITS: dict[str, Editing] = {}


def edit(made: Editing) -> Editing:
    """Have an edit of a resource tried."""
    EDITS[made.__name__.strip("_")] = made
    return made


@edit
def _member_names(random: Random, resource: JsonObject) -> JsonObject:
    """Names of members in other letters."""
    keep = random.choice((0.0, 0.5, 0.9))
    changed: Any = resource
    for place, holder in sorted(objects(resource), key=lambda one: -len(one[0])):
        names = {name: name if random.random() < keep else other_letters(random, name) for name in holder}
        if len(set(names.values())) == len(holder):
            there = _at(changed, place)
            changed = with_value(changed, place, {names[name]: inner for name, inner in there.items()})
    return dict(changed)


@edit
def _members_twice(random: Random, resource: JsonObject) -> JsonObject | None:
    """A member once more in other letters, with another value."""
    place, holder = random.choice(list(objects(resource)))
    names = [name for name in holder if name.swapcase() not in holder and isinstance(holder[name], str | bool | int)]
    if not names:
        return None
    name = random.choice(names)
    value = random.choice(("Disabled", "Dedicated", True, False, 0, None, "internal"))
    entries = list(holder.items())
    entries.insert(random.randrange(len(entries) + 1), (name.swapcase(), value))
    return dict(with_value(resource, place, dict(entries)))


@edit
def _tag_spellings(random: Random, resource: JsonObject) -> JsonObject | None:
    """The tag that makes work regulated under another name, with other letters, and next to a harmless one."""
    places = [place for place, _ in _places(resource) if place and place[-1] == _TAG]
    if not places:
        return None
    place = random.choice(places)
    tags, value = dict(_at(resource, place[:-1])), _at(resource, place)
    tags.pop(_TAG)
    name = random.choice(
        (
            _TAG,
            _TAG.upper(),
            _TAG.title(),
            _TAG.replace("-", "_"),
            _TAG.replace("-", " "),
            "dataClassification",
            _TAG.replace("a", "\u0430"),
            f"{_TAG}\u200b",
            _TAG.replace("c", "\uff43"),
        )
    )
    if isinstance(value, str):
        letters = (value, value.upper(), f" {value}", f"{value}\u200b", value.replace("e", "\u0435"), f"\ufeff{value}")
        value = random.choice(letters)
    entries = [*tags.items(), (name, value)]
    if random.random() < 0.5:
        harmless = next(one for one in (_TAG, _TAG.title(), "data_classification") if one != name)
        entries.insert(random.randrange(len(entries) + 1), (harmless, "internal"))
    random.shuffle(entries)
    return dict(with_value(resource, place[:-1], dict(entries)))


@edit
def _order(random: Random, resource: JsonObject) -> JsonObject:
    """Members in another order."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in random.sample(list(value), len(value))}
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    return dict(shuffled(resource))


@edit
def _junk_members(random: Random, resource: JsonObject) -> JsonObject | None:
    """A member of the properties that nothing knows, with what would be compliant in it."""
    places = [(place, holder) for place, holder in objects(resource) if place and place[0] == "properties"]
    if not places:
        return None
    place, holder = random.choice(places)
    junk: Any = random.choice(({"properties": holder}, {"publicNetworkAccess": "Disabled"}, "x" * 1000, [], None))
    name = random.choice(("junk", "properties2", "", "~", "a/b", "\u200b", "x" * 300))
    return dict(with_value(resource, place, {**holder, name: junk}))


@edit
def _numbers(random: Random, resource: JsonObject) -> JsonObject | None:
    """A number as a whole float or as text, and true and false as text."""
    found = [(place, value) for place, value in leaves(resource) if isinstance(value, int | float)]
    if not found:
        return None
    place, value = random.choice(found)
    forms: list[object] = [str(value).lower(), str(value).upper(), f" {str(value).lower()} "]
    if not isinstance(value, bool) and value == int(value) and abs(value) < 2**53:
        forms.append(float(value))
    return dict(with_value(resource, place, random.choice(forms)))


@edit
def _words(random: Random, resource: JsonObject) -> JsonObject | None:
    """Words in other letters, with white space around, with an invisible or a look-alike letter."""
    found = [
        (place, value)
        for place, value in leaves(resource)
        if isinstance(value, str) and place[0] == "properties" and value.isascii() and "/" not in value and value
    ]
    if not found:
        return None
    place, value = random.choice(found)
    ways = (other_letters(random, value), f" {value}", f"{value}\t", f"{value}\u00a0", f"{value}\u200b")
    return dict(with_value(resource, place, random.choice((*ways, value.replace("e", "\u0435")))))


# ---------------------------------------------------------------- edits of bytes

ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "a byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 of the other order": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "other ends of lines": lambda text: text.replace("\n", "\r\n").encode(),
    "lines before it": lambda text: b"\r\n\n" + text.encode(),
    "a zero after it": lambda text: text.encode() + b"\0",
    "cut off": lambda text: (
        text.encode()[: len(text) // 2] if text[:1] in "[{" else text.encode()
    ),  # YAML may end anywhere
    "escaped letters": lambda text: text.encode("ascii", "backslashreplace") if text.isascii() else text.encode(),
}


def _places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield at, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _places(one, (*at, key))


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


# ---------------------------------------------------------------- the run


class Bypass(NamedTuple):
    """A failing document that passes after an edit."""

    edit: str
    format: str
    of: str
    files: dict[str, bytes]


def failing(bundle: Bundle) -> list[tuple[Failing, str]]:
    """The fail cases of the active policies, each with the id of what fails."""
    found, baselines = [], baselines_of(bundle)
    for policy in bundle.policies:
        file = read_cases(policy)
        alone = bundle.only([policy])
        for case in prepared_cases(policy, file, baselines) if file else ():
            if case.expected == "fail" and not case.snapshot.unreadable:
                given_parameters = {policy.id: case.case.parameters}
                one = Failing(f"{policy.id}: {case.name}", alone, case.snapshot, case.as_of, given_parameters)
                found.append((one, case.identity))
    return found


def run(count: int, seed: int, bundle: Bundle | None = None) -> tuple[Counter[tuple[str, str]], list[Bypass]]:
    """Try so many edits.

    Returns:
        how often each edit ended with what, and what passed after it.
    """
    random = Random(seed)  # noqa: S311  # nothing here is secret
    cases = failing(bundle or policyeng.load_bundle())
    small: dict[int, Failing] = {}
    seen, past = Counter[tuple[str, str]](), list[Bypass]()
    formats = ("native", "rest", *WRITERS)
    while seen.total() < count:
        number, name = random.randrange(len(cases)), random.choice(formats)
        case = small[number] = small.get(number) or cases[number][0].smaller(cases[number][1])
        resources = list(case.snapshot.resources)
        files = in_format(name, resources)
        if not files or case.exit_code(files) != 1:
            continue  # the format does not state what fails
        ways = [*EDITS, *ENCODINGS]
        for made in random.sample(ways, min(len(ways), 5)):
            edited = _edited(random, made, name, resources, files)
            if not edited or edited == files:
                continue
            code = case.exit_code(edited)
            seen[made, f"exit {code}"] += 1
            if code == 0:
                past.append(Bypass(made, name, case.name, edited))
    return seen, past


def _edited(
    random: Random, made: str, name: str, resources: Sequence[JsonObject], files: dict[str, bytes]
) -> dict[str, bytes]:
    if made in ENCODINGS:
        return {file: ENCODINGS[made](content.decode()) for file, content in files.items()}
    if name not in _ARM and made in ("member_names", "members_twice", "junk_members"):
        return {}  # its names have case, and whoever reads it refuses others
    changed = [EDITS[made](random, one) or one for one in resources]
    again = in_format(name, changed)
    # What a writer cannot state it leaves out, and then nothing is known of the rest.
    return again if sorted(_ids(name, changed)) == sorted(_ids(name, resources)) else {}


def _ids(name: str, resources: Sequence[JsonObject]) -> list[str]:
    stated = resources if name in ("native", "rest") else written(name, resources)[0]
    return [str(value) for one in stated for key, value in one.items() if key.lower() == "id"]


if __name__ == "__main__":
    counted, found = run(int(sys.argv[1]), int(sys.argv[2]))
    for (edited, outcome), number in sorted(counted.items()):
        print(f"{number:6} {edited}: {outcome}")  # noqa: T201  # a script
    for one in found[:200]:
        print(f"\n{one.edit} of {one.of} as {one.format}\n  {one.files}"[:3000])  # noqa: T201  # the same
    sys.exit(bool(found))
