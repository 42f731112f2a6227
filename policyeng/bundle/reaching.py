"""What of its input a policy can read at all: from its text, which may say too much of it and never too little."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyeng.bundle.declaration import Policy

#: The members of `input.snapshot` that no change of a resource changes.
_STATED = frozenset(
    {"scope", "takenAt", "taken_at", "approvals", "quotas", "metrics", "principals", "incomplete"}
    | {"by_series", "by_measured", "by_principal"}
)
#: What a snapshot states and collectors may fail to read, with how policies name it: as a member or a key.
_COLLECTED = {
    name: re.compile(rf"[.\"'`](?:{named})\b(?! import)")
    for name, named in (("metrics", "metrics|by_measured"), ("quotas", "quotas"))
}
#: A text, a raw text or a comment of Rego, whichever begins first.
_APART = re.compile(r'"(?:\\.|[^"\\\n])*+"?|`[^`]*+`?|#.*')
#: Texts that hold code.
_TEMPLATE = re.compile(r'\$["`]')
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w.]+)[ \t]*(?:#.*)?;?$", re.MULTILINE)
_INPUT = re.compile(r"\binput\b((?:\.[a-zA-Z_]\w*){0,2})")
_DATA = re.compile(r"\bdata\b((?:\.[a-zA-Z_]\w*)*)")
#: Modules that Python policies may import and that never see a policy's input, but what it gives them.
_OURS = ("policyeng.facts", "policyeng.models")
#: What of a policy's input the facts of `Reach` are about, by attribute.
_WORKSPACE, _CLOCK, _SNAPSHOT = "workspace", "as_of", "snapshot"
#: Ways to an attribute that do not name it.
_VEILED = frozenset(
    {"getattr", "vars", "eval", "exec", "attrgetter", "fields", "asdict", "astuple", "format", "format_map"}
)


class Reach(NamedTuple):
    """What a policy can read beside the judged resource and its parameters.

    Attributes:
        workspace: the workspace of the judged resource.
        clock: `as_of`.
        others: what a snapshot holds of other resources.
        workloads: workloads among that, by their own name.
        collected: `metrics` and `quotas`, where its text or one that it leads to names them at all.
    """

    workspace: bool
    clock: bool
    others: bool
    workloads: bool
    collected: frozenset[str] = frozenset()


EVERYTHING = Reach(workspace=True, clock=True, others=True, workloads=True, collected=frozenset(_COLLECTED))


def reaches_of(policies: Iterable[Policy], modules: Sequence[tuple[str, str]]) -> tuple[Reach, ...]:
    """What each policy can read; `modules` are those of its bundle."""
    texts: dict[str, list[str]] = {}
    for _, source in modules:
        named = _PACKAGE.search(source)
        code = source if _TEMPLATE.search(source) else _APART.sub('""', source)
        texts.setdefault(named[1] if named else "", []).append(code)
    reads = {package: _Reads.of("\n".join(sources), texts) for package, sources in texts.items()}
    for named, source in ((_PACKAGE.search(source), source) for _, source in modules):
        package = named[1] if named else ""
        reads[package] = reads[package]._replace(collected=reads[package].collected | _collected(source))
    return tuple(_in_rego(policy.package, reads) if policy.rules else _in_python(policy) for policy in policies)


class _Reads(NamedTuple):
    """What the modules of a package name: parts of the input, such as `.snapshot.by_id`, and packages."""

    inputs: frozenset[str]
    packages: frozenset[str]
    collected: frozenset[str] = frozenset()

    @classmethod
    def of(cls, code: str, packages: Iterable[str]) -> _Reads:
        """The packages are those that a reference leads to, or that lie below it."""
        named = {name[1:] for name in _DATA.findall(code)}
        led = {
            package
            for package in packages
            for name in named
            if not name or f"{package}.".startswith(f"{name}.") or f"{name}.".startswith(f"{package}.")
        }
        return cls(frozenset(_INPUT.findall(code)), frozenset(led))


def _in_rego(package: str, reads: Mapping[str, _Reads]) -> Reach:
    """What is reached from a package, through all the packages that it names."""
    seen, waiting, inputs, collected = set[str](), [package, ""], set[str](), frozenset[str]()
    while waiting:
        here = waiting.pop()
        if here not in seen and here in reads:
            seen.add(here)
            inputs |= reads[here].inputs
            collected |= reads[here].collected
            waiting += reads[here].packages
    if "" in inputs:
        return EVERYTHING
    parts = [tuple(name[1:].split(".")) for name in inputs]
    return _reach({part[0] for part in parts}, {part[1:2] for part in parts if part[0] == _SNAPSHOT}, collected)


def _collected(source: str) -> frozenset[str]:
    return frozenset(name for name, named in _COLLECTED.items() if named.search(source))


def _reach(members: set[str], of_snapshot: set[tuple[str, ...]], collected: frozenset[str]) -> Reach:
    return Reach(
        workspace=_WORKSPACE in members,
        clock=_CLOCK in members,
        others=any(not name or name[0] not in _STATED for name in of_snapshot),
        workloads=("workloads",) in of_snapshot,
        collected=collected,
    )


def _in_python(policy: Policy) -> Reach:
    """What the text of a policy's module names; everything where it can reach what it does not name."""
    text = policy.python.text if policy.python else b""
    tree = ast.parse(text)
    if not (text and _is_plain(tree)):
        return EVERYTHING
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    further = [node for node in read if isinstance(node.value, ast.Attribute) and node.value.attr == _SNAPSHOT]
    of_snapshot: set[tuple[str, ...]] = {(node.attr,) for node in further}
    if len(further) < sum(node.attr == _SNAPSHOT for node in read):  # it is given away whole
        of_snapshot.add(())
    return _reach({node.attr for node in read}, of_snapshot, _collected(text.decode()))


def _is_plain(tree: ast.AST) -> bool:
    """Whether a module imports nothing that its input could be given to, and nothing in it hides what it reads."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    is_veiled = any(name in _VEILED or name.startswith("__") for name in names)
    is_veiled = is_veiled or any(isinstance(node, ast.MatchClass) for node in nodes)
    return not is_veiled and all(map(_is_known, _imported(nodes)))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else node.module or ""


def _is_known(name: str) -> bool:
    """Whether what a module imports can read no more of an input than it is given."""
    top = name.partition(".")[0]
    return name in ("policyeng", "policyeng.bundle") or name.startswith(_OURS) or top in sys.stdlib_module_names
