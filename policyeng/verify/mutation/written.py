"""Policies written anew with a fault in their text: which faults there are, and the bundle that has one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of, leads_to
from policyeng.bundle.discovery import policies_of
from policyeng.bundle.rego_trees import tree_of
from policyeng.errors import BundleError
from policyeng.evaluation.pointers import values_at
from policyeng.models import JsonObject, lowered
from policyeng.verify.drawing.estates import Estates
from policyeng.verify.mutation.edits import Mutant, Mutation, Spoken, mutants
from policyeng.verify.mutation.python import python_mutations, same_program
from policyeng.verify.mutation.rego import Places, rego_mutations
from policyeng.verify.mutation.rego_headers import header_mutations
from policyeng.verify.observing import observe

#: Longer texts are messages.
_LONGEST = 40


class Written:
    """A policy as it was written, for which there are cases."""

    def __init__(self, bundle: Bundle, policy: Policy) -> None:
        """Read it.

        Raises:
            BundleError: it has no cases, or its text is not UTF-8.
        """
        self.bundle = bundle.only([policy])
        self.policy = policy
        self._file = PurePosixPath(policy.file)
        if policy.cases is None:
            raise BundleError(f"`{policy.id}` has no cases", remedy="put a cases.yaml beside it")
        self._root = policy.cases.parents[len(self._file.parent.parts)]
        self._modules = dict(_needed(bundle, policy))
        # The text that was read and verified; the file may be another one by now.
        self._source = self._modules[policy.file] if policy.rules else _text_of(policy)

    def mutants(self) -> list[Mutant]:
        """The policy with every fault that can be written into it, in the order of their places.

        Those that are the same program as it is, or as one before, are left out as far as that is plain to see.
        """
        made = mutants(self.policy.id, self.policy.file, self._source, self._mutations())
        if self.policy.rules:
            return made
        programs = {same_program(self._source)}
        return [mutant for mutant in made if _is_new(mutant, programs)]

    def bundle_of(self, mutant: Mutant) -> Bundle:
        """The bundle with the mutant alone in force.

        Raises:
            BundleError: it is no policy; what does not compile is found when it judges.
        """
        read = policies_of(self._root, {self._file: mutant.source.encode()})
        if len(read) != 1:
            raise BundleError("it is no policy", place=(mutant.file,))
        policy = read[0] if read[0].python else replace(read[0], python=self.policy.python)
        modules = self._modules
        if self.policy.rules:
            if self._tree_of(mutant.source) == self._tree_of(self._source):  # the same program under another header
                return self.bundle.rewritten(policy, modules.items(), self.bundle.digest)
            modules = {**modules, self.policy.file: mutant.source}
        digest = hashlib.sha256(f"{self.bundle.digest} {mutant.source}".encode()).hexdigest()
        return self.bundle.rewritten(policy, modules.items(), digest)

    def _mutations(self) -> Iterator[Mutation]:
        if not self.policy.rules:
            yield from python_mutations(self._source, self._spoken())
            return
        header, file = self.policy.header, self.policy.file
        yield from header_mutations(self._source, self._spoken())
        places = Places(observe(self.bundle, self.policy).pointers, tuple(header.parameters), self._spoken())
        yield from rego_mutations(self._source, file in self.bundle.rego_v0, places)

    def _tree_of(self, source: str) -> tuple[object, ...]:
        tree = tree_of(source, self.policy.file in self.bundle.rego_v0)
        return tree.package, tree.imports, tree.rules

    def _spoken(self) -> Spoken:
        estates = Estates(self.bundle)
        standing = dict(estates.vocabulary.words[self.policy.id].standing)
        for judged in self.policy.header.judges:
            alike = [one for one in estates.baselines.resources.values() if _is_of(one, judged.type)]
            standing |= {
                pointer: tuple(value for one in alike for value in _texts(values_at(one, pointer)))
                for pointer in judged.where
            }
        return Spoken([sorted(set(_texts(values))) for values in standing.values()])


def _is_of(resource: JsonObject, kind: str) -> bool:
    return lowered(str(resource.get("type"))) == lowered(kind)


def _text_of(policy: Policy) -> str:
    try:
        return policy.python.text.decode() if policy.python else ""
    except UnicodeDecodeError as error:
        raise BundleError(f"the policy is not UTF-8: {error}", place=(policy.file,)) from error


def _is_new(mutant: Mutant, programs: set[str]) -> bool:
    """Whether a text in Python is another program than those known; what does not parse is found when it is read."""
    try:
        program = same_program(mutant.source)
    except (SyntaxError, ValueError):
        return True
    new = program not in programs
    programs.add(program)
    return new


def _texts(values: Iterable[object]) -> Iterator[str]:
    """The short texts among values, and among those in lists."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST and not value.startswith("/"):
            yield value


def _needed(bundle: Bundle, policy: Policy) -> Iterator[tuple[str, str]]:
    """The modules that a policy reads, directly or not: the others would only have to be compiled for every mutant."""
    sources = dict(bundle.modules)
    analyses = {path: analysis_of(text, path in bundle.rego_v0, path) for path, text in bundle.modules}
    waiting = [policy.file] if policy.file in sources else []
    seen = set(waiting)
    for path in waiting:  # which grows while it is walked
        yield path, sources[path]
        roots = (read.partition(".") for read in analyses[path].reads)
        reads = [name for root, _, name in roots if root == "data"]
        for other, analysis in analyses.items():
            if other not in seen and any(leads_to(read, analysis.package) for read in reads):
                seen.add(other)
                waiting.append(other)
