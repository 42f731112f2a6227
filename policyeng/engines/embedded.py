"""Judge Rego with the native engine: compiled once per bundle, every pair bounded, the GIL released."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from policyeng import _native, cache
from policyeng.bundle import Bundle, Policy
from policyeng.engines.foreign import foreign_judgement
from policyeng.engines.work import Judgement, Pair, Work
from policyeng.errors import EngineError
from policyeng.models import Denial, Unknown, made

#: Policies as the native engine takes them: id, and the rules with their roles.
_Rules = Sequence[tuple[str, Sequence[tuple[str, str]]]]

#: Under which name `Work.made` holds the parsed snapshot.
DOCUMENTS = "documents"

#: Members of a collection that go and come: its name, where, how many go, the JSON of those that come.
Splice = tuple[str, int, int, Sequence[bytes]]
#: A member of an index: the keys that lead to it, and its JSON; None where it goes.
Entry = tuple[Sequence[str], bytes | None]

_CLEAN = Judgement()
_SKIPPED = Judgement(applies=False)
_MEMBERS = {"msg", "path", "actual", "expected"}


def version() -> str:
    """The version of regorus."""
    return _native.ENGINE_VERSION


def form_of(bundle: Bundle) -> list[tuple[Policy, str, str]]:
    """For every Rego policy: the policy, `rvm` or `interpreter`, and why it is not the faster one (else empty).

    Raises:
        EngineError: the bundle does not compile.
    """
    policies = _rego_policies(bundle)
    forms = _program(_Key(bundle)).engines
    return [(policy, *form) for policy, form in zip(policies, forms, strict=True)]


def judge_pairs(work: Work, pairs: Sequence[Pair], *, interpreter: bool = False) -> list[Judgement]:
    """Judgements in the order of the pairs, which name Rego policies; `interpreter` has it judge what the RVM could.

    Raises:
        EngineError: the bundle does not compile.
    """
    ready = _ready(work, interpreter=interpreter)
    verdicts = ready.program.judge(
        documents_of(work),
        [(ready.numbers[pair.policy], pair.subject, pair.workspace) for pair in pairs],
        ready.parameters,
        work.as_of.isoformat().replace("+00:00", "Z"),
        threads=work.threads or os.cpu_count() or 1,
    )
    in_force = work.bundle.policies
    return [judgement_of(verdict, in_force[pair.policy]) for verdict, pair in zip(verdicts, pairs, strict=True)]


def documents_of(work: Work) -> _native.Documents:
    """The snapshot as the native engine reads it, parsed once."""
    if DOCUMENTS not in work.made:
        work.made[DOCUMENTS] = _native.Documents(work.document)
    documents: _native.Documents = work.made[DOCUMENTS]
    return documents


def changed_documents(
    made: Mapping[str, object], splices: Sequence[Splice], entries: Sequence[Entry]
) -> dict[str, object]:
    """What engines make of a snapshot after a change of it; splices and entries are those of `Documents.changed`."""
    documents = made.get(DOCUMENTS)
    if not isinstance(documents, _native.Documents):
        return dict(made)
    return {**made, DOCUMENTS: documents.changed(splices, entries)}


class _Ready(NamedTuple):
    """A bundle and its parameters, ready to judge; `numbers` are those of its policies in the program."""

    program: _native.Program
    numbers: Mapping[int, int]
    parameters: _native.Parameters


def _ready(work: Work, *, interpreter: bool) -> _Ready:
    name = "interpreted" if interpreter else "compiled"
    if name not in work.made:
        in_rego = [index for index, policy in enumerate(work.bundle.policies) if policy.rules]
        parameters = _native.Parameters([orjson.dumps(work.parameters[index]) for index in in_rego])
        program = (_interpreted if interpreter else _program)(_Key(work.bundle))
        work.made[name] = _Ready(program, {index: number for number, index in enumerate(in_rego)}, parameters)
    ready: _Ready = work.made[name]
    return ready


class _Key:
    """A bundle as the key of its compiled program: equal when digest and policies in force are."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.identity = (bundle.digest, tuple(policy.id for policy in bundle.policies))

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.identity == other.identity


def _rego_policies(bundle: Bundle) -> list[Policy]:
    return [policy for policy in bundle.policies if policy.rules]


@lru_cache(maxsize=8)
def _program(key: _Key) -> _native.Program:
    bundle = key.bundle
    policies = [(policy.id, list(policy.rules)) for policy in _rego_policies(bundle)]
    if bundle.rego_v0 or any(policy.input_form != "policy" for policy in bundle.policies):
        return _compiled(bundle, policies)  # neither the form of input nor the version of Rego is in a stored program
    entry = _entry(bundle, policies)
    stored = cache.load(entry)
    if stored is not None:
        # An entry that cannot be read is as good as none.
        with suppress(ValueError):
            return _native.Program.load(stored, bundle.data_bytes, policies)
    program = _compiled(bundle, policies)
    if (programs := program.dump()) is not None:
        cache.store(entry, programs)
    return program


@lru_cache(maxsize=2)
def _interpreted(key: _Key) -> _native.Program:
    policies = [(policy.id, list(policy.rules)) for policy in _rego_policies(key.bundle)]
    return _compiled(key.bundle, policies, interpreter=True)


def _compiled(bundle: Bundle, policies: _Rules, *, interpreter: bool = False) -> _native.Program:
    try:
        return _native.Program(
            list(bundle.modules),
            bundle.data_bytes,
            policies,
            interpreter,
            rego_v0=set(bundle.rego_v0),
            forms=[policy.input_form for policy in _rego_policies(bundle)],
        )
    except ValueError as error:
        raise EngineError(f"the bundle does not compile: {error}", place=(bundle.name,)) from error


def as_v1(bundle: Bundle) -> Sequence[tuple[str, str]]:
    """The modules of a bundle, all in Rego v1, so that every engine reads the same.

    Raises:
        EngineError: a module cannot be written so.
    """
    try:
        return _native.as_v1(list(bundle.modules), set(bundle.rego_v0)) if bundle.rego_v0 else bundle.modules
    except ValueError as error:
        raise EngineError(f"the bundle does not compile: {error}", place=(bundle.name,)) from error


def _entry(bundle: Bundle, policies: _Rules) -> str:
    """The key of the compiled program: the build of the native engine, the text it compiles, the rules asked for."""
    modules = (part for path, source in bundle.modules for part in (path, source))
    texts = (*modules, "data", hashlib.sha256(bundle.data_bytes).hexdigest(), orjson.dumps(policies).decode())
    return cache.key_of("program", _native.BUILD, *texts)


def judgement_of(verdict: bool | bytes | tuple[str, str] | None, policy: Policy | None = None) -> Judgement:
    """What the native module says of a pair, as a judgement; the policy says how its denials are read."""
    if verdict is None:
        return _CLEAN
    if isinstance(verdict, bool):
        return _SKIPPED
    if isinstance(verdict, tuple):
        return Judgement(error=": ".join(verdict))
    said = orjson.loads(verdict)
    if policy is not None and policy.input_form != "policy":
        return foreign_judgement(policy, said["deny"], said.get("exception", []))
    try:
        denials = tuple(_denial(element) for element in said["deny"])
        unknowns = tuple(_unknown(element) for element in said["unknown"])
    except (TypeError, ValueError) as error:
        return Judgement(error=str(error))
    return Judgement(denials=denials, unknowns=unknowns)


def _denial(element: Any) -> Denial:
    if isinstance(element, str):
        return made(Denial, msg=element, path="", actual=None, expected=None)
    _well_formed("deny", element, _MEMBERS)
    return made(
        Denial,
        msg=element["msg"],
        path=element.get("path", ""),
        actual=element.get("actual"),
        expected=element.get("expected"),
    )


def _unknown(element: Any) -> Unknown:
    if isinstance(element, str):
        return made(Unknown, msg=element, path="")
    _well_formed("unknown", element, {"msg", "path"})
    return made(Unknown, msg=element["msg"], path=element.get("path", ""))


def _well_formed(rule: str, element: Any, members: set[str]) -> None:
    if not isinstance(element, dict) or not isinstance(element.get("msg"), str):
        raise TypeError(f"an element of `{rule}` is not an object with a string `msg`")
    if not isinstance(element.get("path", ""), str):
        raise TypeError(f"the `path` of an element of `{rule}` is not a string")
    surplus = sorted(set(element) - members)
    if surplus:
        raise ValueError(f"an element of `{rule}` carries the unknown member `{surplus[0]}`")
