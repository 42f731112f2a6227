"""The rules of a program by their path below `data`, and what OPA refuses about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policyeng.rego.budget import spend
from policyeng.rego.errors import Diagnostic
from policyeng.rego.paths import write_part
from policyeng.rego.resolver import COMPILE_ERROR, TYPE_ERROR, Definition
from policyeng.rego.syntax import Number, Scalar, Term
from policyeng.rego.values import Value, to_text


@dataclass(slots=True)
class DataNode:
    """One path below `data`.

    Attributes:
        definitions: rules whose whole path is this one.
        dynamic: rules that begin here and go on with something that is not a constant string.
        is_package: a module has this package.
    """

    path: tuple[str, ...]
    children: dict[str, DataNode] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    dynamic: list[Definition] = field(default_factory=list)
    is_package: bool = False

    @property
    def is_rule(self) -> bool:
        """Whether rules define it as a whole."""
        return bool(self.definitions)

    @property
    def is_function(self) -> bool:
        """Whether it is called with arguments."""
        return bool(self.definitions) and self.definitions[0].arguments is not None

    def below(self) -> Iterator[DataNode]:
        """Yield this node and all below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            spend()
            yield node
            waiting += reversed(node.children.values())

    def child(self, name: str) -> DataNode:
        """Return the node of a name below this one, made if there is none."""
        return self.children.setdefault(name, DataNode((*self.path, name)))

    def find(self, path: Iterable[str]) -> DataNode | None:
        """Return the node at a path below this one, None if there is none."""
        node: DataNode | None = self
        for name in path:
            node = node.children.get(name) if node is not None else None
        return node


def build_tree(packages: Iterable[tuple[str, ...]], definitions: Iterable[Definition]) -> DataNode:
    """Arrange rules by their paths."""
    root = DataNode(())
    for package in packages:
        node = root
        for name in package:
            node = node.child(name)
        node.is_package = True
    for definition in definitions:
        node = root
        for name in definition.prefix:
            node = node.child(name)
        (node.definitions if len(definition.prefix) == len(definition.path) else node.dynamic).append(definition)
    return root


def path_text(path: Iterable[Term | str]) -> str:
    """Return a path below `data` as Rego writes it."""
    text = "data"
    for part in path:
        if isinstance(part, Number):
            text += f"[{part.text}]"
            continue
        name = part.value if isinstance(part, Scalar) else part if isinstance(part, str) else None
        if name is None:
            text += "[_]" if not hasattr(part, "name") else f"[{part.name.partition('@')[0] or '_'}]"
        else:
            text += write_part(name) if isinstance(name, str) else f"[{to_text(name)}]"
    return text


def conflicts(root: DataNode) -> Iterator[Diagnostic]:
    """Yield the rules that cannot be together."""
    for node in root.below():
        if node.definitions:
            yield from _conflicts_at(node)
        if node.dynamic:
            yield from _dynamic_conflicts(node)


def data_conflicts(root: DataNode, data: Value) -> Iterator[Diagnostic]:
    """Yield the rules at whose path there is base data, or below a part of it that is no object."""
    for node in root.below():
        rules = [*node.definitions, *(each for each in node.dynamic if not each.is_ground)]
        if not rules:
            continue
        place, value = 0, data
        while place < len(node.path) and isinstance(value, dict) and node.path[place] in value:
            value = value[node.path[place]]
            place += 1
        if place == len(node.path) or (place and not isinstance(value, dict)):
            found = path_text(node.path[:place])
            message = f"conflicting rule for data path {'/'.join(node.path)} found"
            hint = f"the base data has a value at {found}: rename the rule {path_text(node.path)} or remove the data"
            yield Diagnostic(COMPILE_ERROR, message, rules[0].source, rules[0].start, (hint,))


def _conflicts_at(node: DataNode) -> Iterator[Diagnostic]:
    first = node.definitions[0]
    name = path_text(node.path)
    below = [child for part in node.children.values() for child in part.below() if child.definitions or child.dynamic]
    defaults = [definition for definition in node.definitions if definition.default]
    kinds = {_kind(definition) for definition in node.definitions}
    if below:
        others = ", ".join(path_text(child.path) for child in below)
        yield _fault(first, f"rule {name} conflicts with [{others}]")
    elif len(kinds) > 1:
        yield _fault(first, f"conflicting rules {name} found")
    elif len(defaults) > 1:
        lines = ", ".join(
            f"{definition.source.file}:{definition.source.position(definition.start)[0]}" for definition in defaults
        )
        yield _fault(defaults[0], f"multiple default rules {name} found at {lines}")
    elif node.dynamic:
        yield _fault(first, f"conflicting rules {name} found")
    if node.is_package:
        yield _fault(first, f"package {name} conflicts with rule {name}")


def _dynamic_conflicts(node: DataNode) -> Iterator[Diagnostic]:
    by_path: dict[str, list[Definition]] = {}
    for definition in node.dynamic:
        by_path.setdefault(path_text("*" if not isinstance(p, Scalar) else p for p in definition.path), []).append(
            definition
        )
    for found in by_path.values():
        if len({_kind(definition) for definition in found}) > 1:
            yield _fault(found[0], f"conflicting rules {path_text(found[0].path)} found")


def _kind(definition: Definition) -> tuple[str, int | None]:
    if definition.key is not None:
        return ("set", None)
    return ("value", None if definition.arguments is None else len(definition.arguments))


def _fault(definition: Definition, message: str) -> Diagnostic:
    return Diagnostic(TYPE_ERROR, message, definition.source, definition.start)
