"""Read the models of one API version from the source of an SDK package of the vendor; nothing of it is imported.

Two generators wrote these packages. TypeSpec declares members with `rest_field(name, visibility)`; AutoRest has
`_attribute_map`, `_validation` and `_subtype_map`, and names enumerations only in signatures and docstrings. The model
of a resource type is what its operations return.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Types of values by what the two generators call them.
SCALARS = {
    **dict.fromkeys(("Any", "JSON", "object"), "any"),
    **dict.fromkeys(("str", "datetime.timedelta", "duration", "datetime.time", "time"), "string"),
    **dict.fromkeys(("datetime.datetime", "iso-8601", "rfc-1123", "datetime.date", "date"), "string"),
    **dict.fromkeys(("bytes", "bytearray", "base64"), "string"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("int", "long", "unix-time"), "integer"),
    **dict.fromkeys(("float", "decimal.Decimal"), "number"),
    "list": "[]any",
    "dict": "{}any",
}
_LISTS = frozenset({"list", "List", "Sequence", "Iterable"})
_MAPS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
_RETURNED = re.compile(r":rtype: (?:~[\w.]*Poller\[)?~[\w.]+\.(\w+)")


@dataclass
class Member:
    """A member of an object.

    Attributes:
        type: `string`, `boolean`, `integer`, `number`, `any`, `=ENUMERATION` or `#OBJECT`, each behind any number of
            `[]` for a list and `{}` for a map of the user.
        flags: `r` read-only, `q` required, `c` only when it is created, `s` never returned.
        versions: the API versions that have it.
    """

    type: str
    flags: str = ""
    versions: frozenset[str] = frozenset()


@dataclass
class Model:
    """An object: its members, and by the value of the member `by` the objects that are of its kinds."""

    members: dict[str, Member] = field(default_factory=dict)
    by: str = ""
    kinds: dict[str, str] = field(default_factory=dict)


@dataclass
class Models:
    """The models of an API version: objects and enumerations by name, and the names of objects by resource type."""

    version: str
    objects: dict[str, Model] = field(default_factory=dict)
    enumerations: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def read_models(folder: Path, version: str) -> Models:
    """Return the models in the folder of a client, with `models` and `operations`.

    Raises:
        SystemExit: the folder is not such a client.
    """
    files = sorted((folder / "models").glob("*.py"))
    typed = [file for file in files if not file.with_name(f"{file.stem}_py3.py").exists()]
    if not typed:
        raise SystemExit(f"{folder} has no models: the layout of the package has changed")
    classes = [node for file in typed for node in _parse(file).body if isinstance(node, ast.ClassDef)]
    return _Reader(classes, version).read(_parse(file) for file in sorted((folder / "operations").glob("*.py")))


def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


class _Reader:
    def __init__(self, classes: list[ast.ClassDef], version: str) -> None:
        bases = {node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases] for node in classes}
        enumerations = {node.name: _constants(node) for node in classes if _is_enumeration(node)}
        self.words = {name: words for name, words in enumerations.items() if words}
        self.nodes = {node.name: node for node in classes if node.name not in enumerations}
        self.bases = {
            name: [base for base in bases[name] if base in self.nodes and base != name] for name in self.nodes
        }
        self.models = Models(version)

    def read(self, operations: Iterator[ast.Module]) -> Models:
        own = {name: self._own(node) for name, node in self.nodes.items()}
        for name in self.nodes:
            lineage = [*self._lineage(name)]
            members = {key: member for base in reversed(lineage) for key, member in own[base].members.items()}
            by = next((own[base].by for base in lineage if own[base].by), "")
            kinds = {kind: other for kind, other in own[name].kinds.items() if other in self.nodes}
            self.models.objects[name] = Model(members, by if kinds else "", kinds)
        for name, node in self.nodes.items():  # TypeSpec: each kind names its base
            kind = next((_literal(word.value) for word in node.keywords if word.arg == "discriminator"), None)
            for base in self.bases[name] if isinstance(kind, str) else ():
                holder = self.models.objects[base]
                holder.by = holder.by or next(own[one].by for one in self._lineage(base) if own[one].by)
                holder.kinds[str(kind)] = name
        version = frozenset({self.models.version})
        for model in self.models.objects.values():
            for member in model.members.values():
                member.versions = version
        self.models.enumerations = {name: dict.fromkeys(words.values(), version) for name, words in self.words.items()}
        for tree in operations:
            self._read_operations(tree)
        return self.models

    def _lineage(self, name: str) -> Iterator[str]:
        yield name
        for base in self.bases[name]:
            yield from self._lineage(base)

    def _own(self, node: ast.ClassDef) -> Model:
        assigned = {
            statement.targets[0].id: statement.value
            for statement in node.body
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
        documented = _enumerations_in(ast.get_docstring(node) or "")
        if "_attribute_map" in assigned:
            return self._own_of_autorest(node, assigned, documented)
        return self._own_of_typespec(node, documented)

    def _own_of_typespec(self, node: ast.ClassDef, documented: Mapping[str, str]) -> Model:
        model = Model()
        is_kind = any(word.arg == "discriminator" for word in node.keywords)
        for statement in node.body:
            if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Call)):
                continue
            call = ast.unparse(statement.value.func)
            if call not in ("rest_field", "rest_discriminator") or not isinstance(statement.target, ast.Name):
                continue
            options = {word.arg: _literal(word.value) for word in statement.value.keywords}
            attribute = statement.target.id
            name, visibility = str(options.get("name") or attribute), options.get("visibility") or ["read", "create"]
            flags = _flags_of(visibility) + "q" * (not ast.unparse(statement.annotation).startswith("Optional"))
            kind = self._type_of(statement.annotation)
            if call == "rest_discriminator":
                model.by = "" if is_kind and model.by else name
                kind = self._documented(kind, documented.get(attribute))
            model.members[name] = Member(kind, flags)
        return model

    def _own_of_autorest(
        self, node: ast.ClassDef, assigned: Mapping[str, ast.expr], documented: Mapping[str, str]
    ) -> Model:
        attributes: dict[str, dict[str, str]] = ast.literal_eval(assigned["_attribute_map"])
        checks = ast.literal_eval(assigned["_validation"]) if "_validation" in assigned else {}
        functions = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        arguments = {arg.arg: arg.annotation for item in functions for arg in item.args.kwonlyargs if arg.annotation}
        model = Model()
        for attribute, wire in attributes.items():
            kind = self._wire_type(wire["type"])
            stated = self._type_of(arguments[attribute]) if attribute in arguments else ""
            if "=" in stated and kind.replace("string", "") == stated[: stated.index("=")]:
                kind = stated
            kind = self._documented(kind, documented.get(attribute))
            check = checks.get(attribute, {})
            flags = "r" * bool(check.get("readonly")) + "q" * bool(check.get("required"))
            *above, last = (key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", wire["key"]))
            holder, place = model, node.name
            for key in above:  # AutoRest flattens `properties`
                place = f"{place}.{key}"
                if key not in holder.members:
                    holder.members[key] = Member(f"#{place}")
                    self.models.objects[place] = Model()
                holder = self.models.objects[holder.members[key].type.removeprefix("#")]
            holder.members[last] = Member(kind, flags)
        for attribute, kinds in (_literal(assigned["_subtype_map"]) if "_subtype_map" in assigned else {}).items():
            model.by, model.kinds = attributes[attribute]["key"].replace("\\.", "."), dict(kinds)
        if not model.by and (words := [key for key, wire in attributes.items() if _is_constant(functions, key)]):
            model.by = attributes[words[0]]["key"].replace("\\.", ".")
        return model

    def _documented(self, kind: str, enumeration: str | None) -> str:
        """Return a type with the enumeration of a docstring: that of discriminators, for one, is only there."""
        return kind.replace("string", f"={enumeration}") if enumeration in self.words else kind

    def _type_of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self._type_of(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else ""
        if isinstance(node, ast.Subscript):
            head = ast.unparse(node.value).rpartition(".")[2]
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if head in _LISTS:
                return f"[]{self._type_of(parts[0])}"
            if head in _MAPS:
                return f"{{}}{self._type_of(parts[1])}"
            if head == "Literal":
                return "string" if isinstance(parts[0], ast.Constant) else f"={ast.unparse(parts[0]).split('.')[-2]}"
            kinds = list(dict.fromkeys(filter(None, map(self._type_of, parts))))  # Optional and Union
            named = [kind for kind in kinds if "=" in kind]
            return named[0] if named else kinds[0] if len(kinds) == 1 else "any"
        return self._named(ast.unparse(node))

    def _wire_type(self, text: str) -> str:
        if text[0] in "[{":
            return f"{text[0]}{text[-1]}{self._wire_type(text[1:-1])}"
        return self._named(text)

    def _named(self, name: str) -> str:
        short = name.rpartition(".")[2]
        if short in self.words:
            return f"={short}"
        return f"#{short}" if short in self.nodes else SCALARS.get(name, SCALARS.get(short, "any"))

    def _read_operations(self, tree: ast.Module) -> None:
        requests: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("build_"):
                texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                url = next((text for text in texts if isinstance(text, str) and "/providers/" in text), "")
                if arm_type := _type_in(url) if {"GET", "PUT"}.intersection(map(str, texts)) else "":
                    requests[node.name] = arm_type
        for node in tree.body:
            for function in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(function, ast.Assign) and ast.unparse(function.targets[0]).endswith(".metadata"):
                    # The first AutoRest for Python 3 builds a request in the method, and notes its URL behind it.
                    requests[ast.unparse(function.targets[0])] = _type_in(str(_literal(function.value)["url"]))
        for node in tree.body:
            for function in node.body if isinstance(node, ast.ClassDef) else ():
                if not isinstance(function, ast.FunctionDef):
                    continue
                returned = _RETURNED.search(re.sub(r"\s+", " ", ast.get_docstring(function) or ""))
                if returned is None or returned[1] not in self.nodes:
                    continue
                called = {ast.unparse(part.func) for part in ast.walk(function) if isinstance(part, ast.Call)}
                called |= {
                    f"build_{name[6:].removesuffix('_initial')}_request" for name in called if name[:6] == "self._"
                }
                called.add(f"{function.name}.metadata" if function.name.startswith(("get", "create")) else "")
                for request in called & requests.keys():
                    self.models.types.setdefault(requests[request], returned[1])


def _is_enumeration(node: ast.ClassDef) -> bool:
    return any(re.search(r"\bEnum\b", ast.unparse(base)) for base in node.bases)


def _is_constant(functions: list[ast.FunctionDef], attribute: str) -> bool:
    """Return whether `__init__` sets an attribute to a constant: the discriminator of a kind."""
    statements = [statement for function in functions for statement in function.body]
    return any(
        isinstance(statement, ast.AnnAssign | ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        and ast.unparse(statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0])
        == f"self.{attribute}"
        for statement in statements
    )


def _flags_of(visibility: Any) -> str:
    if "read" not in visibility:
        return "s"
    return {("read",): "r", ("read", "create"): "c"}.get(tuple(visibility), "")


def _constants(node: ast.ClassDef) -> dict[str, str]:
    pairs = ((item.targets[0], _literal(item.value)) for item in node.body if isinstance(item, ast.Assign))
    return {ast.unparse(name): value for name, value in pairs if isinstance(value, str)}


def _enumerations_in(text: str) -> dict[str, str]:
    """Return by attribute the enumeration that the `:vartype` of a docstring names."""
    flat = re.sub(r"\s+", " ", text)
    stated = re.findall(r":vartype (\w+): (.*?)(?= :ivar| :vartype| :keyword|$)", flat)
    named = ((name, re.search(r"or ~[\w.]+\.(\w+)", kind)) for name, kind in stated)
    return {name: match[1] for name, match in named if match}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _type_in(url: str) -> str:
    """Return the resource type that the URL of a request names; empty for a list and for an action."""
    namespace, *parts = url.rpartition("/providers/")[2].strip("/").split("/")
    names, keys = parts[::2], parts[1::2]
    if not keys or len(names) != len(keys) or any(name.startswith("{") for name in names):
        return ""
    return f"{namespace}/{'/'.join(names)}" if keys[-1].startswith("{") or keys[-1] == "default" else ""
