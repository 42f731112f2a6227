"""The mutants of a policy, and the bundles with a mutant in place of its policy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import orjson
import yaml

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.analysis import analysis_of, is_reference_to
from policyeng.bundle.discovery import policies_of
from policyeng.bundle.rego_trees import tree_of
from policyeng.errors import BundleError
from policyeng.evaluation.pointers import values_at
from policyeng.frozen import replace
from policyeng.models import JsonObject, lowered
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.mutation.python import normalize_source, python_mutations
from policyeng.verify.mutation.rego import (
    Mutant,
    Mutation,
    MutationTargets,
    Spoken,
    TextEdit,
    mutants,
    mutation,
    rego_mutations,
    without_member,
)

#: A block of comments, with the package after it if it is the header.
_COMMENTS = re.compile(r"^((?:#.*\n)++)(\s*package[ \t])?", re.MULTILINE)
_METADATA = re.compile(r"^#[ \t]*METADATA[ \t]*\n", re.MULTILINE)
_INTEGER = re.compile(r"-?\d+")


def header_mutations(source: str, spoken: Spoken) -> Iterator[Mutation]:
    """Yield every fault of the header of a module.

    Text for people (titles, messages, sources), `consults` and the contracts are not changed; laws test the contracts.
    """
    place = _block(source)
    if place is None:
        return
    start, end = place
    # The comment signs become spaces, so every character stays at its place.
    before = re.sub(r"[^\n]", " ", source[:start])
    tree = yaml.compose(before + re.sub(r"^#", " ", source[start:end], flags=re.MULTILINE), yaml.SafeLoader)
    yield from _HeaderMutants(source, spoken).mutations(tree)


def _block(source: str) -> tuple[int, int] | None:
    """Find where the header above the package begins, after its first line, and ends."""
    for comments in _COMMENTS.finditer(source):
        if comments[2] and (first := _METADATA.search(comments[1])):
            return comments.start() + first.end(), comments.end(1)
    return None


class _HeaderMutants:
    def __init__(self, source: str, spoken: Spoken) -> None:
        self._source = source
        self._spoken = spoken

    def mutations(self, tree: yaml.Node | None) -> Iterator[Mutation]:
        fields = {**_fields(tree), **_fields(_fields(tree).get("custom"))}
        yield from self._judges(fields.get("judges"))
        schemas = _fields(fields.get("parameters"))
        for schema in _fields(schemas.get("properties", fields.get("parameters"))).values():
            yield from self._default(_fields(schema).get("default"))

    def _judges(self, judges: yaml.Node | None) -> Iterator[Mutation]:
        entries = _entries(judges)
        if isinstance(judges, yaml.SequenceNode) and len(entries) > 1:
            for index in range(len(entries)):
                yield Mutation("drop a selector", (self._dropped(judges, index),))
        for entry in _list_entries(judges):
            for index, (key, where) in enumerate(_pairs(entry)):
                if key.value == "where":
                    yield Mutation("drop a selector", (self._dropped(entry, index),))
                    yield from self._where(where)

    def _where(self, where: yaml.Node) -> Iterator[Mutation]:
        pairs = _pairs(where)
        for index, (_, allowed) in enumerate(pairs):
            if len(pairs) > 1:
                yield Mutation("drop a selector", (self._dropped(where, index),))
            yield from self._set(allowed)

    def _default(self, default: yaml.Node | None) -> Iterator[Mutation]:
        if isinstance(default, yaml.SequenceNode):
            yield from self._set(default)
        elif isinstance(default, yaml.ScalarNode):
            start, end = _span(default)
            if _INTEGER.fullmatch(default.value):
                for other in (int(default.value) + 1, int(default.value) - 1):
                    yield mutation("shift a number", start, end, str(other))
            elif default.value in ("true", "false"):
                yield mutation("flip a boolean", start, end, "false" if default.value == "true" else "true")
            else:
                quoted = int(default.style in ("'", '"'))
                yield mutation("change a text", end - quoted, end - quoted, "_")

    def _set(self, node: yaml.Node) -> Iterator[Mutation]:
        entries = _entries(node)
        if not isinstance(node, yaml.SequenceNode) or not entries:
            return
        for index in range(len(entries)):
            edit = self._dropped(node, index) if len(entries) > 1 else TextEdit(*_span(node), "[]")
            yield Mutation("narrow a set", (edit,))
        start = _span(entries[0])[0]
        held = [entry.value for entry in entries if isinstance(entry, yaml.ScalarNode)]
        word = self._spoken.another(held) if _in_brackets(node) and len(held) == len(entries) else None
        if word:
            yield mutation("widen a set", start, start, f"{orjson.dumps(word).decode()}, ")

    def _dropped(self, node: yaml.Node, index: int) -> TextEdit:
        """Remove a member of a list or mapping: in brackets with its comma, otherwise with its lines."""
        members = [member if isinstance(member, tuple) else (member, member) for member in node.value]
        spans = [(first.start_mark.index, _end(last)) for first, last in members]
        if _in_brackets(node):
            return without_member(spans, index)
        start = self._source.rindex("\n", 0, spans[index][0]) + 1
        end = self._source.index("\n", spans[index][1]) + 1
        if self._source.count("\n", start, spans[index][0]) == 0 and self._opens(node, index, start):
            # The first key of a mapping in a list follows the hyphen, which stays.
            start = spans[index][0]
            end = spans[index + 1][0] if index + 1 < len(spans) else spans[index][1]
        return TextEdit(start, end, "")

    def _opens(self, node: yaml.Node, index: int, start: int) -> bool:
        line = self._source[start : node.start_mark.index]
        return isinstance(node, yaml.MappingNode) and index == 0 and "-" in line


def _fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in _pairs(node)}


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _entries(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _list_entries(node: yaml.Node | None) -> list[yaml.Node]:
    """Return the entries of a list; a value that is not a list is the only entry."""
    return [node] if isinstance(node, yaml.MappingNode) else _entries(node)


def _span(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def _in_brackets(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _end(node: yaml.Node) -> int:
    """Return the end of the last scalar in a node; a block ends where the next one begins."""
    if isinstance(node, yaml.ScalarNode) or _in_brackets(node) or not node.value:
        end: int = node.end_mark.index
        return end
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


#: Longer texts are messages.
_LONGEST = 40


class Written:
    """The original policy, with its cases."""

    def __init__(self, bundle: Bundle, policy: Policy) -> None:
        """Read the policy.

        Raises:
            BundleError: the policy has no cases, or is not UTF-8.
        """
        self.bundle = bundle.only([policy])
        self.policy = policy
        self._file = PurePosixPath(policy.file)
        if policy.cases is None:
            raise BundleError(f"`{policy.id}` has no cases", remedy="add a `cases.yaml` next to it")
        self._root = policy.cases.parents[len(self._file.parent.parts)]
        self._modules = dict(_needed_modules(bundle, policy))
        # Use the verified text of the bundle, because the file can have changed.
        self._source = self._modules[policy.file] if policy.rules else _text_of(policy)

    def mutants(self) -> list[Mutant]:
        """Return all mutants of the policy, in the order of their places.

        Mutants that are obviously the same program as the original or an earlier mutant are left out.
        """
        made = mutants(self.policy.id, self.policy.file, self._source, self._mutations())
        if self.policy.rules:
            return made
        programs = {normalize_source(self._source)}
        return [mutant for mutant in made if _is_new(mutant, programs)]

    def bundle_of(self, mutant: Mutant) -> Bundle:
        """Return the bundle with the mutant as the only active policy.

        Raises:
            BundleError: the mutant is not a policy; compile errors appear in the evaluation.
        """
        read = policies_of(self._root, {self._file: mutant.source.encode()})
        if len(read) != 1:
            raise BundleError("the mutant is not a policy", place=(mutant.file,))
        policy = read[0] if read[0].python else replace(read[0], python=self.policy.python)
        modules = self._modules
        if self.policy.rules:
            if self._tree_of(mutant.source) == self._tree_of(self._source):  # the same program under another header
                return self.bundle.rewritten(policy, modules.items(), self.bundle.digest)
            modules = {**modules, self.policy.file: mutant.source}
        digest = hashlib.sha256(f"{self.bundle.digest} {mutant.source}".encode()).hexdigest()
        return self.bundle.rewritten(policy, modules.items(), digest)

    def _mutations(self) -> Iterator[Mutation]:
        if self.policy.header.evidence:  # it has no text of its own to change
            return
        if not self.policy.rules:
            yield from python_mutations(self._source, self._spoken())
            return
        header, file = self.policy.header, self.policy.file
        yield from header_mutations(self._source, self._spoken())
        places = MutationTargets(observe(self.bundle, self.policy).pointers, tuple(header.parameters), self._spoken())
        yield from rego_mutations(self._source, file in self.bundle.rego_v0, places)

    def _tree_of(self, source: str) -> tuple[object, ...]:
        tree = tree_of(source, self.policy.file in self.bundle.rego_v0)
        return tree.package, tree.imports, tree.rules

    def _spoken(self) -> Spoken:
        estates = EstateGenerator(self.bundle)
        standing = dict(estates.vocabulary.words[self.policy.id].standing)
        for judged in self.policy.header.judges:
            peers = [one for one in estates.baselines.resources.values() if _is_of(one, judged.type)]
            standing |= {
                pointer: tuple(value for one in peers for value in _texts(values_at(one, pointer)))
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
    """Check whether a Python text is another program than the known ones; syntax errors appear when it is loaded."""
    try:
        program = normalize_source(mutant.source)
    except (SyntaxError, ValueError):
        return True
    new = program not in programs
    programs.add(program)
    return new


def _texts(values: Iterable[object]) -> Iterator[str]:
    """Yield the short texts among values, and among the members of lists."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST and not value.startswith("/"):
            yield value


def _needed_modules(bundle: Bundle, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the modules that a policy reads, directly or not; the others would only be compiled for every mutant."""
    sources = dict(bundle.modules)
    analyses = {path: analysis_of(text, path in bundle.rego_v0, path) for path, text in bundle.modules}
    waiting = [policy.file] if policy.file in sources else []
    seen = set(waiting)
    for path in waiting:  # the loop appends to it
        yield path, sources[path]
        roots = (read.partition(".") for read in analyses[path].reads)
        reads = [name for root, _, name in roots if root == "data"]
        for other, analysis in analyses.items():
            if other not in seen and any(is_reference_to(read, analysis.package) for read in reads):
                seen.add(other)
                waiting.append(other)
