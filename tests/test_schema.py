"""The schema of resource types: laws of its graph, what it drives, what is printed of it, and where it comes from."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.facts.arm_casing import as_arm_reads, respell_pointer
from policyeng.models import lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.schema import ResourceType, ValueType, find_type, fold_name, list_types, list_word_names
from tests.command import policyeng
from tests.conftest import ROOT

TABLES = ROOT / "tools" / "schema"
ML = "Microsoft.MachineLearningServices/workspaces"
TYPES = list_types()
#: Deeper documents say nothing more: objects repeat.
DEPTH = 5
TOP = frozenset({"id", "name", "type", "tags"})


def known(arm_type: str) -> ResourceType:
    """What the schema has of a type."""
    found = find_type(arm_type)
    assert found is not None
    return found


def reachable() -> Iterator[ValueType]:
    """Every place of every type, once."""
    seen, waiting = set[ValueType](), [known(name).body for name in TYPES]
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen.add(kind)
            yield kind
            waiting += [*kind.types.values(), *kind.kinds.values(), *filter(None, (kind.entries, kind.values))]


PLACES = list(reachable())


@st.composite
def documents(draw: st.DrawFn, kind: ValueType, depth: int = 0) -> Any:
    """A value of a type, with the members of one kind, names of the user, and words of enumerations."""
    if kind.types and depth < DEPTH:
        document: dict[str, Any] = {}
        if kind.kinds:
            word = draw(st.sampled_from(sorted(kind.kinds)))
            document[kind.discriminator] = kind.types[kind.discriminator].words.get(word, word)
            kind = kind.kinds[word]
        for name in draw(st.lists(st.sampled_from(sorted(kind.types)), max_size=3, unique=True)):
            if name not in document:
                document[name] = draw(documents(kind.types[name], depth + 1))
        return document
    if kind.entries is not None and not kind.is_any:
        return draw(st.lists(documents(kind.entries, depth + 1), max_size=2))
    if kind.values is not None:
        return {name: draw(documents(kind.values, depth + 1)) for name in draw(st.sets(USERS, max_size=3))}
    return (
        draw(st.sampled_from(sorted(kind.words.values())))
        if kind.words
        else draw(st.sampled_from(["a", 1, True, None]))
    )


#: Names of the user, some of which differ in case alone or look like ARM's.
USERS = st.sampled_from(["Count", "count", "vmSize", "VMSIZE", "a/b", "properties"])


@st.composite
def resources(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A type, and the body of a resource of it."""
    name = draw(st.sampled_from(TYPES))
    body = draw(documents(known(name).body))
    return name, {key: value for key, value in body.items() if key not in TOP and key.lower() != "etag"}


@st.composite
def in_other_letters(draw: st.DrawFn, value: Any, kind: ValueType | None) -> Any:
    """The same with names of ARM in other letters, and white space around words."""
    if isinstance(value, dict):
        kind = kind and kind.of_value(value)
        changed = {}
        for key, inner in value.items():
            is_ours = kind is not None and key in kind.types
            spelled = draw(st.sampled_from([key, key.upper(), key.swapcase()])) if is_ours else key
            changed[spelled] = draw(in_other_letters(inner, kind and kind.step(key)))
        return changed
    if isinstance(value, list):
        return [draw(in_other_letters(inner, kind and kind.entries)) for inner in value]
    if kind and kind.words and isinstance(value, str):
        return draw(st.sampled_from([value, f" {value}", f"{value}\t"]))
    return value


@given(st.data(), resources())
def test_a_document_in_other_letters_is_read_as_itself(
    data: st.DataObject, resource: tuple[str, dict[str, Any]]
) -> None:
    """Names of ARM as it spells them, names of the user as they are; what is read so is read as it is."""
    name, document = resource
    written = data.draw(in_other_letters(document, known(name).body))

    read = as_arm_reads(written, name)

    assert (read.part, read.twice) == (document, ())
    assert as_arm_reads(read.part, name.upper()).part is read.part
    for pointer, place in read.fields.items():
        assert fold_name(pointer.rpartition("/")[2]) == fold_name(place.rpartition("/")[2])


@given(resources())
def test_every_value_of_a_document_has_a_type(resource: tuple[str, dict[str, Any]]) -> None:
    """By its pointer, which is spelled as it is."""
    name, document = resource
    waiting: list[tuple[str, Any]] = [(f"/{key}", value) for key, value in document.items()]
    for pointer, value in waiting:
        assert known(name).body.at(pointer) is not None
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [(f"{pointer}/{escaped(key)}", one) for key, one in inner]
        assert respell_pointer(pointer, name) == pointer


def test_a_kind_has_what_all_kinds_have_and_no_more() -> None:
    """At every place with kinds: each is found in any letters, and its members are among those of the place."""
    places = [kind for kind in PLACES if kind.kinds]
    for kind in places:
        for word, of_kind in kind.kinds.items():
            assert kind.of_value({kind.discriminator: f" {word.upper()} "}) is of_kind
            assert of_kind.types.keys() <= kind.types.keys()
            assert kind.discriminator in of_kind.types
        assert kind.of_value({kind.discriminator: "no kind"}) is kind.of_value({}) is kind

    assert len(places) > 40


def test_no_object_has_a_name_in_two_spellings() -> None:
    """Otherwise a document with both would be read as one."""
    twice = {
        (kind.objects, name)
        for kind in PLACES
        if len(kind.objects) == 1
        for name in kind.types
        if kind.spellings[fold_name(name)] != name
    }

    assert twice == set()
    assert "vmpriority" in list_word_names()
    assert "environmentid" not in list_word_names()


def test_members_of_preview_versions_say_so() -> None:
    """And those of the version that describes the type do not."""
    workspace = known(ML).body.at("/properties")
    assert workspace is not None
    assert "2024-10-01-preview" in workspace.members["networkAcls"].versions
    assert "2025-12-01" not in workspace.members["networkAcls"].versions
    assert workspace.members["publicNetworkAccess"].versions == ()
    assert workspace.members["provisioningState"].read_only


def test_a_type_that_is_unknown_is_none() -> None:
    """Whatever its name is."""
    for name in ("", "/", "Microsoft.Unknown/x", "../x", "microsoft.advisor", f"{ML}/nothing", "microsoft.Ädvisor/x"):
        assert find_type(name) is None


def test_every_type_that_is_judged_looked_up_or_in_a_case_is_known() -> None:
    """The list comes from the policies."""
    bundle = load_bundle()
    types = {lowered(target.type) for policy in bundle.policies for target in policy.header.judges}
    types |= {kind for reach in bundle.reaches for kind in reach.types}
    types |= {lowered(resource["type"]) for resource in baselines_of(bundle).resources.values()}

    assert {name for name in types if "/" in name and find_type(name) is None} == set()


@pytest.mark.parametrize("name", [f"{ML}/computes", "microsoft.storage/STORAGEACCOUNTS"])
def test_a_type_is_printed_for_people(name: str) -> None:
    """In 80 columns, with the type as the vendor spells it."""
    printed = policyeng("schema", "resource", name).stdout

    assert printed.startswith(known(name).name)
    assert max(map(len, printed.splitlines())) <= 80
    assert re.search(r"provisioningState: [^:]*Succeeded[^:]*\[read-only\]", printed)


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    """And so is a name with nothing behind it, or with something that it does not take."""
    wrong = policyeng("schema", "resource", "Microsoft.MachineLearningServices/workspace/compute")
    assert wrong.returncode == 3
    assert f"{ML}/computes" in wrong.stderr
    for words in (["resource"], ["snapshot", "x"], ["resource", ML, "--output-dir", "x"]):
        assert policyeng("schema", *words).returncode == 3


def test_every_row_by_hand_has_a_source_and_a_reason() -> None:
    """And each version of a package is locked with its hashes."""
    with (TABLES / "overlay.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"].startswith("https://") and row["reason"] for row in rows)
    locked = "".join((TABLES / f"{name}.lock").read_text() for name in ("current", "older"))
    with (TABLES / "sources.csv").open(encoding="utf-8", newline="") as file:
        packages = {row["package"] for row in csv.DictReader(file)}
    assert packages == set(re.findall(r"^\S+==\S+", locked, re.MULTILINE))


@pytest.mark.slow
def test_the_data_is_what_the_packages_give() -> None:
    """Byte by byte; the packages come from PyPI, and where it is not reached this fails and says so."""
    command = [sys.executable, "tools/build_schema.py", "--verify"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "7"})

    assert done.returncode == 0, done.stdout + done.stderr
