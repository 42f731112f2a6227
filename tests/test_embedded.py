"""The embedded engine: a program from the cache judges as the compiled one, and is used only where it may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import orjson
import pytest
from hypothesis import given, settings

from policyeng import _native
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.tree import built_in_root
from policyeng.engines import embedded
from policyeng.errors import EngineError
from policyeng.evaluation import evaluate
from policyeng.models import Evaluation, Snapshot
from policyeng.sources import load_snapshot
from tests.conftest import ROOT
from tests.drawn import AS_OF, ESTATES, LAW
from tests.effort import effort

BUNDLE = load_bundle()
SAMPLES = sorted((ROOT / "samples" / "workspaces").iterdir())
#: What a program holds that bytes may lose.
LITERALS = """package p
deny contains {"msg": "numbers", "actual": [1.0, 0.1, 100000000000000000000000000001, -0.0, 2, 18446744073709551615]}
deny contains {"msg": "others", "actual": ["\\u0000\\ud83d\\ude00", {"b": {"a": []}}, null, true]}
deny contains {"msg": "sets", "actual": {3, 1.0, 1, "x"}}
deny contains {"msg": "arithmetic", "actual": 7 % input.resource.n}
"""


@pytest.fixture(autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own for each test, and no program of an earlier one in memory."""
    place = tmp_path_factory.mktemp("cache")
    place.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLICYENG_CACHE_DIR", str(place))
        embedded._program.cache_clear()
        yield place
    embedded._program.cache_clear()


class Native:
    """The native module without its compiler: programs can only be loaded."""

    Documents = _native.Documents
    Parameters = _native.Parameters
    BUILD = _native.BUILD
    ENGINE_VERSION = _native.ENGINE_VERSION

    class Program:
        """No program is compiled."""

        load = _native.Program.load

        def __init__(self, *_: object, **__: object) -> None:
            raise ValueError("nothing is compiled here")


def judged(snapshot: Snapshot, bundle: Bundle = BUNDLE) -> Evaluation:
    """An evaluation by a program that is not in memory."""
    embedded._program.cache_clear()
    return evaluate(bundle, snapshot, as_of=AS_OF, threads=2)


def judged_as_stored(snapshot: Snapshot, bundle: Bundle = BUNDLE) -> Evaluation:
    """The same without compiling; an EngineError when no stored program fits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "_native", Native)
        return judged(snapshot, bundle)


@settings(LAW, max_examples=effort(3, 300))
@given(ESTATES)
def test_a_stored_program_judges_as_the_compiled_one(snapshot: Snapshot) -> None:
    """On every snapshot, with every built-in policy."""
    assert judged(snapshot) == judged_as_stored(snapshot)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_stored_program_judges_the_samples_alike(path: Path) -> None:
    """The same findings, in every byte of the report."""
    snapshot = load_snapshot(path)
    compiled = judged(snapshot)

    assert judged_as_stored(snapshot).model_dump_json() == compiled.model_dump_json()


def test_what_bytes_may_lose_is_judged_alike() -> None:
    """Numbers keep their form, or the program is not stored."""
    rules = [("P", [("deny", "data.p.deny")])]
    compiled = _native.Program([("p.rego", LITERALS)], b"{}", rules)
    stored = compiled.dump()
    documents = _native.Documents(orjson.dumps({"resources": [{"n": 4}, {"n": 0}, {"n": 1.5}, {}]}))
    pairs = [(0, index, -1) for index in range(4)]
    arguments = (documents, pairs, [b"{}"], "2026-01-01T00:00:00Z")
    outcomes = compiled.judge(*arguments)

    assert isinstance(outcomes[0], bytes)
    assert isinstance(outcomes[1], tuple)
    assert stored is None or _native.Program.load(stored, b"{}", rules).judge(*arguments) == outcomes


def test_numbers_that_bytes_keep_are_stored() -> None:
    """The precaution above costs no ordinary policy its place in the cache."""
    rules = [("P", [("deny", "data.p.deny")])]
    source = 'package p\ndeny contains {"msg": "m", "actual": [1, -5, "x", 0.5]} if input.resource.n / 3 > 0.25\n'

    assert _native.Program([("p.rego", source)], b"{}", rules).dump() is not None


def test_a_program_of_the_interpreter_is_not_stored(place: Path) -> None:
    """`with` is beyond the machine; the entry would not be whole."""
    source = 'package p\nq if input.x\ndeny contains "m" if q with input.x as true\n'
    program = _native.Program([("p.rego", source)], b"{}", [("P", [("deny", "data.p.deny")])])

    assert program.engines[0][0] == "interpreter"
    assert program.dump() is None
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ([], "0 programs are stored for 1"),
        ([b""], "too short"),
        ([b"REGO" + b"\0" * 60], "version"),
        ([bytes(500)], "magic"),
    ],
)
def test_bytes_that_are_no_program_are_refused(stored: list[bytes], reason: str) -> None:
    """With an error and no crash."""
    with pytest.raises(ValueError, match=reason):
        _native.Program.load(stored, b"{}", [("P", [("deny", "data.p.deny")])])


def test_a_program_of_other_rules_is_refused() -> None:
    """It would say nothing of the rules asked for."""
    source = 'package p\ndeny contains "m" if input.x\nunknown contains "n" if input.y\n'
    stored = _native.Program([("p.rego", source)], b"{}", [("P", [("deny", "data.p.deny")])]).dump()

    assert stored is not None
    for rules in ([("unknown", "data.p.unknown")], [("deny", "data.p.deny"), ("unknown", "data.p.unknown")]):
        with pytest.raises(ValueError, match="has other rules"):
            _native.Program.load(stored, b"{}", [("P", rules)])


def test_whatever_the_program_follows_from_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text, other data, another choice of policies, another build of the engine: each is compiled anew."""
    snapshot = load_snapshot(SAMPLES[0])
    judged(snapshot)
    judged_as_stored(snapshot)
    path, source = BUNDLE.modules[0]
    others = [
        replace(BUNDLE, modules=((path, f"{source}\n"), *BUNDLE.modules[1:])),
        replace(BUNDLE, modules=((f"x{path}", source), *BUNDLE.modules[1:])),
        replace(BUNDLE, data={**BUNDLE.data, "more": 1}),
        BUNDLE.only(policy for policy in BUNDLE.policies if policy.rules and policy.area == "network"),
    ]
    for other in others:
        with pytest.raises(EngineError, match="nothing is compiled here"):
            judged_as_stored(snapshot, replace(other, digest="another"))
    monkeypatch.setattr(Native, "BUILD", "another")
    with pytest.raises(EngineError, match="nothing is compiled here"):
        judged_as_stored(snapshot)


def test_policies_of_others_are_compiled_each_time(place: Path) -> None:
    """A stored program says neither what `input` is for a policy nor which Rego it was written in."""
    snapshot = load_snapshot(SAMPLES[0])
    policy, *rest = (policy for policy in BUNDLE.policies if policy.rules)
    foreign = BUNDLE.only([replace(policy, input_form="document"), *rest])
    for bundle in (replace(foreign, digest="foreign"), replace(BUNDLE, digest="v0", rego_v0=frozenset({"x.rego"}))):
        judged(snapshot, bundle)
    assert list(place.iterdir()) == []


def test_a_loaded_program_knows_one_form_of_input() -> None:
    """Whatever the form it was compiled for; that is why policies of others are not stored."""
    rules = [("P", [("deny", "data.p.deny")])]
    source = 'package p\ndeny contains "document" if input.a\ndeny contains "policy" if input.resource.a\n'
    compiled = _native.Program([("p.rego", source)], b"{}", rules, forms=["document"])
    stored = compiled.dump()
    arguments = (_native.Documents(b'{"resources": [{"a": 1}]}'), [(0, 0, -1)], [b"{}"], "2026-01-01T00:00:00Z")

    assert stored is not None
    assert compiled.judge(*arguments) == [b'{"deny":["document"],"unknown":[]}']
    assert _native.Program.load(stored, b"{}", rules).judge(*arguments) == [b'{"deny":["policy"],"unknown":[]}']


def test_an_edited_policy_is_seen_at_once(tmp_path: Path) -> None:
    """The files are read at every start; the cache never hides a change of theirs."""
    copytree(built_in_root(), tmp_path / "policies")
    edited = tmp_path / "policies" / "network" / "public_network_access" / "public_network_access.rego"
    snapshot = load_snapshot(SAMPLES[0])
    before = judged(snapshot, load_bundle(tmp_path / "policies"))
    judged(snapshot, load_bundle(tmp_path / "policies"))
    text = edited.read_text()
    edited.write_text(text.replace('!= "disabled"', '!= "never"'))
    assert edited.read_text() != text

    after = judged(snapshot, load_bundle(tmp_path / "policies"))

    assert after.bundle.digest != before.bundle.digest
    assert after.summary.fail > before.summary.fail


@pytest.mark.parametrize("harm", [b"", b"policyeng cache 1\n", None])
def test_a_harmed_entry_is_compiled_anew_and_replaced(place: Path, harm: bytes | None) -> None:
    """And the findings are those of the policies."""
    snapshot = load_snapshot(SAMPLES[0])
    first = judged(snapshot)
    (entry,) = place.iterdir()
    good = entry.read_bytes()
    entry.write_bytes(good[:-1] + bytes([good[-1] ^ 1]) if harm is None else harm)

    assert judged(snapshot) == first
    assert entry.read_bytes() == good


def test_a_whole_entry_that_holds_no_program_is_compiled_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one of another form, whose digest is right."""
    from policyeng import cache

    snapshot = load_snapshot(SAMPLES[0])
    first = judged(snapshot)
    (entry,) = place.iterdir()
    good = entry.read_bytes()
    cache.store(entry.stem, [b"no program"] * sum(bool(policy.rules) for policy in BUNDLE.policies))

    assert entry.read_bytes() != good
    assert judged(snapshot) == first
    assert entry.read_bytes() == good
    monkeypatch.setenv("POLICYENG_NO_CACHE", "1")
    with pytest.raises(EngineError):
        judged_as_stored(snapshot)
