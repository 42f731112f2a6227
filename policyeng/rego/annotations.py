"""The annotations of modules, in comments that begin with `# METADATA`, as OPA reads, attaches and refuses them.

It follows `v1/ast/annotations.go` of OPA. What `rego.metadata.rule` and `rego.metadata.chain` return follows from the
text alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, UnsupportedError
from policyeng.rego.errors import Diagnostic, ModuleText, RegoError
from policyeng.rego.lexer import PARSE_ERROR, Comment
from policyeng.rego.syntax import Import, Module, Node, Number, Ref, Rule, Scalar, Var, constant_names, root_name
from policyeng.rego.values import Value, is_number, number_text, to_text, type_name

_PLACES = {"rule": "rule", "document": "rule", "package": "package", "subpackages": "package"}
#: A flag may be written as in YAML 1.1.
_OLD_WORDS = {"y": True, "yes": True, "on": True, "n": False, "no": False, "off": False}
_SCOPES = "`rule`, `document`, `package` or `subpackages`"
Path = tuple[str, ...]


class _Fault(Exception):  # noqa: N818  # never leaves this module
    """Something that is wrong with a block."""


@dataclass(slots=True)
class Annotation:
    """One block.

    Attributes:
        fields: those that OPA knows, as it returns them.
        path: of what it is attached to, below `data`.
        row: of its first line.
    """

    fields: dict[str, Any]
    source: ModuleText
    start: int
    row: int
    scope: str = ""
    path: Path = ()


class Annotations:
    """The annotations of the modules of a program.

    Attributes:
        faults: what OPA refuses.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        """Read the annotations of modules."""
        self.faults: list[Diagnostic] = []
        self._rules: dict[int, list[Annotation]] = {}
        self._packages: dict[Path, Annotation] = {}
        self._paths: dict[Path, Annotation] = {}
        self._has_schemas = False
        for module in modules:
            self._add(module)

    def rule(self, rule: Rule) -> Value:
        """Return what `rego.metadata.rule()` is in a rule: the fields of its first block."""
        found = self._rules.get(id(rule))
        return found[0].fields if found else {}

    def chain(self, module: Module, rule: Rule, first: Rule) -> Value:
        """Return what `rego.metadata.chain()` is in a rule: its own blocks, then those of what it is in.

        Args:
            module: with the rule.
            rule: in whose body the call is.
            first: the same, or the rule whose `else` it is.
        """
        path, package = _path_of(module, first), _package_of(module)
        blocks = self._rules.get(id(rule), [])[::-1]
        found: list[dict[str, Any]] = [{"path": list(path), "annotations": own.fields} for own in blocks]
        around = [self._paths.get(path), self._packages.get(package)]
        around += [self._paths.get(package[:count]) for count in range(len(package), 0, -1)]
        found = found or [{"path": list(path)}]
        return found + [{"path": list(each.path), "annotations": each.fields} for each in around if each is not None]

    def schemas(self, module: Module, rule: Rule, first: Rule) -> list[Value]:
        """Return the schemas that describe documents for a rule: of what it is in, then its own; see `chain`."""
        if not self._has_schemas:
            return []
        package = _package_of(module)
        blocks = [self._paths.get(package[:count]) for count in range(1, len(package) + 1)]
        blocks += [
            self._packages.get(package),
            self._paths.get(_path_of(module, first)),
            *self._rules.get(id(rule), []),
        ]
        found = [schema for block in blocks if block is not None for schema in block.fields.get("schemas", ())]
        return [schema for schema in found if "definition" in schema]

    def _add(self, module: Module) -> None:
        blocks = list(_blocks_of(module))
        if not blocks:
            return
        statements: list[Node] = [module.package, *module.imports, *module.rules]
        nodes = {module.source.position(each.start)[0]: each for each in reversed(statements)}
        rows = sorted(nodes)
        for comments in blocks:
            start = comments[0].start
            row = module.source.position(start)[0]
            following = bisect_right(rows, row)
            below = nodes[rows[following]] if following < len(rows) else None
            try:
                found = Annotation(_read(comments[1:]), module.source, start, row)
                self._attach(module, found, below)
            except _Fault as fault:
                self.faults.append(Diagnostic(PARSE_ERROR, str(fault), module.source, start))

    def _attach(self, module: Module, found: Annotation, node: Node | None) -> None:
        is_entrypoint = found.fields.get("entrypoint", False)
        self._has_schemas = self._has_schemas or "schemas" in found.fields
        kind = "rule" if isinstance(node, Rule) else "import" if isinstance(node, Import) else "package"
        default = {"rule": "document" if is_entrypoint else "rule", "package": "package"}.get(kind, "")
        scope = found.scope = found.fields.setdefault("scope", default if node is not None else "")
        if node is None:
            raise _Fault("there is nothing below this METADATA block that it belongs to: move it above a rule")
        if kind == "import" and not scope:
            raise _Fault("this METADATA block belongs to an import: move it above a rule or `package`")
        if scope not in _PLACES:
            raise _Fault(f"the scope `{scope}` of this METADATA block is unknown: write {_SCOPES}")
        if _PLACES[scope] != kind:
            raise _Fault(
                f"the scope `{scope}` of this METADATA block is for a {_PLACES[scope]}, but below it is a {kind}: "
                f"change the scope or move the block above a {_PLACES[scope]}"
            )
        if is_entrypoint and scope not in ("document", "package"):
            raise _Fault(f"`entrypoint` requires the scope `document` or `package`, not `{scope}`")
        if isinstance(node, Rule):
            found.path = _path_of(module, node)
            if scope == "rule":
                self._rules.setdefault(id(node), []).append(found)
                return
        else:
            found.path = _package_of(module)
        known = self._packages if scope == "package" else self._paths
        before = known.setdefault(found.path, found)
        if before is not found:
            line = f"{before.source.file}:{before.row}"
            message = f"{scope} annotation redeclared: {line} has one of the same scope: remove one of them"
            self.faults.append(Diagnostic("rego_type_error", message, module.source, found.start))


def _package_of(module: Module) -> Path:
    return constant_names(module.package.path)


def _path_of(module: Module, rule: Rule) -> Path:
    ref = rule.head.ref
    path = [*_package_of(module), root_name(ref)]
    for part in ref.path:
        if not isinstance(part, Scalar | Number):
            break
        path.append(
            part.text
            if isinstance(part, Number)
            else part.value
            if isinstance(part.value, str)
            else to_text(part.value)
        )
    return tuple(path)


def _blocks_of(module: Module) -> Iterator[list[Comment]]:
    """Yield the comments of each block, of which the first is `# METADATA`; each is at the beginning of a line."""
    block: list[Comment] = []
    last = 0
    for comment in module.comments:
        row, column = module.source.position(comment.start)
        begins = column == 1 and comment.text.strip().startswith("METADATA")
        if block and (begins or column != 1 or row != last + 1):
            yield block
            block = []
        if begins or block:
            block.append(comment)
        last = row
    if block:
        yield block


def _read(comments: list[Comment]) -> dict[str, Any]:
    """Return the known fields of a block as OPA returns them.

    Raises:
        _Fault: the block is not YAML, or a field has a value of another type.
    """
    text = "".join(f"{comment.text.removeprefix(' ')}\n" for comment in comments)
    if not text.strip():
        raise _Fault("the METADATA block is empty: its lines must follow `# METADATA` without a blank line")
    from policyeng.rego.builtins import yaml_values  # loads a parser of YAML

    try:
        stated = yaml_values.read(text, has_times=True)
    except (BuiltinError, UnsupportedError) as error:
        raise _Fault(f"the METADATA block is not YAML: {error}") from error
    except (BudgetExceededError, RecursionError) as error:
        raise _Fault("the METADATA block has too large values, or takes too long to read") from error
    if not isinstance(stated, dict):
        raise _Fault(f"the METADATA block is {_described(stated)}: write lines such as `title: ...`")
    lines = [line.partition(":")[0].strip() for line in text.splitlines() if not line.startswith((" ", "\t", "#", "-"))]
    for name in _FIELDS:
        if lines.count(name) > 1:
            raise _Fault(f"`{name}` is twice in the METADATA block: remove one of them")
    found = {name: read(name, stated[name]) for name, read in _FIELDS.items() if stated.get(name) is not None}
    return {name: value for name, value in found.items() if value not in (None, "", False, [], {})}


def _described(value: Value) -> str:
    return {"array": "a list", "null": "empty"}.get(type_name(value), f"a {type_name(value)}")


def _text(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str) and not is_number(value):
        raise _Fault(f"`{name}` in the METADATA block is {_described(value)}: it must be a text")
    return value if isinstance(value, str) else number_text(value)


def _flag(name: str, value: Value) -> bool:
    if isinstance(value, str) and value.lower() in _OLD_WORDS:
        return _OLD_WORDS[value.lower()]
    if not isinstance(value, bool):
        raise _Fault(f"`{name}` in the METADATA block is {_described(value)}: it must be `true` or `false`")
    return value


def _object(name: str, value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise _Fault(f"`{name}` in the METADATA block is {_described(value)}: it must be a mapping")
    return value


def _list_of(read: Callable[[str, Value], Value]) -> Callable[[str, Value], list[Value]]:
    def read_list(name: str, value: Value) -> list[Value]:
        if not isinstance(value, list):
            raise _Fault(f"`{name}` in the METADATA block is {_described(value)}: it must be a list")
        return [read(name, each) for each in value]

    return read_list


def _pair(value: Value, *names: str) -> dict[str, str]:
    """Return the texts of a mapping, without those that are empty."""
    texts = {name: value.get(name) for name in names}
    stripped = {name: text.strip() for name, text in texts.items() if isinstance(text, str)}
    return {name: text for name, text in stripped.items() if text}


def _resource(name: str, value: Value) -> dict[str, str]:
    found = {"ref": value} if isinstance(value, str) and value else {}
    if isinstance(value, dict):
        found = _pair(value, "ref", "description")
    if "ref" not in found:
        raise _Fault(
            f"an entry of `{name}` in the METADATA block has no `ref`: write a URL, or `ref` and `description`"
        )
    from policyeng.rego.builtins import go_text  # few modules have one

    try:
        go_text.parse_url(found["ref"])
    except go_text.UrlError as error:
        raise _Fault(f"`{found['ref']}` in `{name}` in the METADATA block is not a URL: {error}") from error
    return found


def _author(name: str, value: Value) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(value, dict):
        found = _pair(value, "name", "email")
    elif isinstance(value, str) and (words := value.split()):
        email = words.pop()[1:-1] if words[-1].startswith("<") and words[-1].endswith(">") else ""
        found = {part: text for part, text in (("name", " ".join(words)), ("email", email)) if text}
    if not found:
        raise _Fault(
            f"an entry of `{name}` in the METADATA block has neither a name nor an email: write `Name <email>`"
        )
    return found


def _schema(name: str, value: Value) -> dict[str, Value]:
    if not isinstance(value, dict) or len(value) != 1:
        raise _Fault(f"an entry of `{name}` in the METADATA block must be one path with its schema")
    ((path, schema),) = value.items()
    if isinstance(schema, dict):
        return {"path": _reference(name, path), "definition": schema}
    reference = _reference(name, schema)
    if reference[:1] != ["schema"]:
        raise _Fault(
            f"`{schema}` in `{name}` in the METADATA block is no reference to a schema, such as `schema.input`"
        )
    return {"path": _reference(name, path), "schema": reference}


def _reference(name: str, text: Value) -> list[Value]:
    from policyeng.rego.parser import parse_query  # few modules have one

    try:
        term = parse_query(str(text))[0].value
    except RegoError:
        term = Scalar(0, 0, None)
    if isinstance(term, Var):
        return [term.name]
    if not isinstance(term, Ref) or not isinstance(term.head, Var):
        raise _Fault(f"`{text}` in `{name}` in the METADATA block is not a reference")
    return [term.head.name, *(part.value for part in term.path if isinstance(part, Scalar))]


_FIELDS: dict[str, Callable[[str, Value], Value]] = {
    "scope": _text,
    "title": _text,
    "entrypoint": _flag,
    "description": _text,
    "organizations": _list_of(_text),
    "related_resources": _list_of(_resource),
    "authors": _list_of(_author),
    "schemas": _list_of(_schema),
    "compile": lambda name, value: _object(name, value) and None,
    "custom": _object,
    "labels": _object,
}
