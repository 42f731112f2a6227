"""Rewrite Rego for an OPA server: reject modules that call the host, and move modules to other paths of `data`."""

from __future__ import annotations

import json
import re
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import PurePosixPath

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.assembling import require_free
from policyeng.bundle.rego_trees import aliases_of, brace_before, tree_of
from policyeng.engines.opa_query import Batch, OpaOptions
from policyeng.engines.opa_server import OpaConnection, OpaRefusedError, PrivateServer, binary_of
from policyeng.errors import EngineError
from policyeng.models import JsonObject
from policyeng.rego import IMPURE, RegoError
from policyeng.rego.syntax import Call, Head, Module, Ref, Rule, Var, dotted_name, walk

#: Builtins for tests and debugging.
_FOR_TESTS = frozenset({"print", "trace"})
#: A replacement in a text: start, end and new text.
TextEdit = tuple[int, int, str]


def syntax_of(path: str, source: str, *, rego_v0: bool = False) -> Module:
    """Return the syntax tree of a module.

    Raises:
        EngineError: it is not Rego.
    """
    try:
        return tree_of(source, rego_v0)
    except RegoError as error:
        fault = error.diagnostics[0]
        raise EngineError(fault.message, place=(f"{path}:{fault.line}",)) from None


@lru_cache(maxsize=1024)  # called for the same modules with every snapshot
def require_pure(path: str, source: str, rego_v0: bool = False) -> None:
    """Reject a module that calls the host, as the embedded engine does, which refuses more.

    Raises:
        EngineError: the module names such a builtin, or is not Rego.
    """
    tree = syntax_of(path, source, rego_v0=rego_v0)
    aliases = aliases_of(tree)
    for node in walk(tree.rules):
        name = dotted_name(node) if isinstance(node, Ref) else ""
        if isinstance(node, Call) and dotted_name(node.operator) in _FOR_TESTS:
            name = dotted_name(node.operator)
        elif name not in IMPURE:
            continue
        if name.partition(".")[0] not in aliases:
            line, _ = tree.source.position(node.start)
            message = f"`{name}` is not available to policies, which can read only their input"
            raise EngineError(message, place=(f"{path}:{line}",))


def package_root(path: str, source: str) -> str:
    """Return the first part of a module's package.

    Raises:
        EngineError: it is not Rego.
    """
    return dotted_name(syntax_of(path, source).package).split(".")[1]


def relocated(path: str, source: str, prefix: str) -> str:
    """Return a module with its package and its references to `data` below a dotted `prefix`; lines do not move.

    Raises:
        EngineError: it is not Rego.
    """
    tree = syntax_of(path, source)
    package = tree.package.path[0].start
    references = (node for node in walk([tree.imports, tree.rules]) if isinstance(node, Ref))
    ends = (ref.head.end for ref in references if isinstance(ref.head, Var) and ref.head.name == "data")
    return edited(source, [(package, package, f"{prefix}."), *((end, end, f".{prefix}") for end in ends)])


def edited(source: str, edits: Iterable[TextEdit]) -> str:
    """Return a text with replacements that do not overlap; duplicates are applied once."""
    parts, position = list[str](), 0
    for start, end, text in sorted(set(edits)):
        parts += source[position:start], text
        position = end
    return "".join((*parts, source[position:]))


#: A module that defines the builtins that v1 removed, and its path.
_DROPPED = (
    "policyeng_v0.rego",
    """\
package policyeng_v0

any(values) if true in values

else := false

all(values) if {
	every value in values {
		value == true
	}
}

else := false

set_diff(left, right) := left - right

cast_array(value) := [member | some member in value] if type_name(value) in {"array", "set"}

cast_set(value) := {member | some member in value} if type_name(value) in {"array", "set"}

cast_string(value) := value if is_string(value)

cast_boolean(value) := value if is_boolean(value)

cast_null(value) := value if is_null(value)

cast_object(value) := value if is_object(value)
""",
)
#: Builtins of v0, and their replacements.
_RENAMED = {
    "re_match": "regex.match",
    "net.cidr_overlap": "net.cidr_contains",
}
_RENAMED |= {name: f"data.policyeng_v0.{name}" for name in re.findall(r"^(\w+)\(", _DROPPED[1], re.MULTILINE)}


def modules_in_v1(bundle: Bundle) -> list[tuple[str, str]]:
    """Return the modules (path, text) of a bundle, those in Rego v0 as v1.

    Raises:
        EngineError: a module cannot be written as v1.
    """
    if not bundle.rego_v0:
        return list(bundle.modules)
    modules = [
        (path, module_in_v1(path, source) if path in bundle.rego_v0 else source) for path, source in bundle.modules
    ]
    return [*modules, _DROPPED]


def module_in_v1(path: str, source: str) -> str:
    """Return a module in Rego v0 as v1.

    Raises:
        EngineError: it is not Rego v0, or what it contains is not Rego v1, such as a variable called `if`.
    """
    tree = syntax_of(path, source, rego_v0=True)
    text = edited(source, _edits(tree))
    try:
        syntax_of(path, text)
    except EngineError as error:
        raise EngineError(f"the module cannot be written as Rego v1: {error.message}", place=error.place) from None
    return text


def _edits(tree: Module) -> Iterator[TextEdit]:
    for rule in tree.rules:
        if not rule.default:
            yield from _edits_of_rule(rule, tree)
    own = {rule.head.ref.head.name for rule in tree.rules if isinstance(rule.head.ref.head, Var)} | {*aliases_of(tree)}
    for node in walk(tree.rules):
        if isinstance(node, Call) and (name := dotted_name(node.operator)) in _RENAMED and name not in own:
            yield node.operator.start, node.operator.end, _RENAMED[name]


def _edits_of_rule(rule: Rule, tree: Module) -> Iterator[TextEdit]:
    head = rule.head
    if head.key is not None and "contains" not in head.keywords:
        yield _set_head(head, tree.source.text)
    if rule.implied_body and head.implied_value:
        yield head.end, head.end, " := true"
    branch: Rule | None = rule
    while branch is not None:
        brace = brace_before(tree, branch.body[0].start)
        # A second body shares the `if` of the first.
        if brace is not None and "if" not in branch.head.keywords and rule.start <= head.start:
            yield brace, brace, "if "
        branch = branch.otherwise


def _set_head(head: Head, text: str) -> TextEdit:
    """Return the edit for the head of a set, `p[x]` or `p.x`, which are the same in v0."""
    start = head.ref.head.end
    key = text[start : head.end].strip()
    named = json.dumps(key[1:].strip()) if key.startswith(".") else key[1:-1].lstrip(" \t")
    return start, head.end, f" contains {named}"


class OpaServerBundle(ABC):
    """A server that has loaded the bundle. One thread at a time uses it, under `lock`.

    Attributes:
        prefix: the dotted path of the bundle's modules below `data`; empty for `data` itself.
        standing: a Rego expression for the identity of the loaded bundle, undefined if it is not loaded.
        extra_input: additional input of every query.
        users: the number of threads that use it or wait for it.
    """

    prefix = ""
    standing = ""
    alive = True

    def __init__(self, connection: OpaConnection) -> None:
        self.connection = connection
        self.lock = threading.Lock()
        self.users = 0
        self.extra_input: JsonObject = {}
        self._batches: dict[tuple[tuple[str, str], ...], Batch] = {}

    def batch_of(self, policies: Sequence[Policy]) -> Batch:
        """Return the batch module of these policies, and upload it when it is first needed."""
        key = tuple((policy.id, policy.input_form) for policy in policies)
        if key not in self._batches:
            batch = Batch(policies, self.prefix, self.standing)
            try:
                self.connection.put_module(f"{batch.package.replace('.', '/')}.rego", batch.source)
            except OpaRefusedError as error:
                raise _push_error(error) from None
            self._batches[key] = batch
        return self._batches[key]

    @contextmanager
    def holding(self, document: JsonObject) -> Iterator[str]:
        """Store a document inside a `with` block, under the yielded name below `data.policyeng.snapshots`."""
        name = secrets.token_hex(16)
        self.connection.put_document(f"policyeng/snapshots/{name}", document)
        try:
            yield name
        finally:
            with suppress(EngineError):  # a document that remains on a failing server affects no verdict
                self.connection.delete_document(f"policyeng/snapshots/{name}")

    @abstractmethod
    def require_standing(self, standing: object) -> None:
        """Reject a response that was not evaluated with our bundle.

        Raises:
            EngineError: it was evaluated without our bundle.
        """

    def close(self) -> None:
        """Close the connection, and stop the server if it is private."""
        self.connection.close()


class PrivatePlace(OpaServerBundle):
    """A private server that has loaded the bundle with a secret, by which it is identified."""

    standing = "data.system.policyeng"

    def __init__(self, bundle: Bundle, options: OpaOptions) -> None:
        self._secret = secrets.token_hex(16)
        files = bundle_files(bundle, self._secret)
        self.server = PrivateServer(binary_of(options), files, self._secret, options.timeout)
        super().__init__(self.server.connection)

    @property
    def alive(self) -> bool:  # type: ignore[override]  # constant for servers that are not ours
        """Whether the process is running."""
        return self.server.alive

    def require_standing(self, standing: object) -> None:
        """Check the secret, which only our server has."""
        if standing != self._secret:
            raise EngineError("could not decide: another server responds on the port of the private OPA server")

    def close(self) -> None:
        """Stop the process."""
        self.server.close()


class PushedPlace(OpaServerBundle):
    """A shared server: all our documents and modules are below `policyeng`, under names from hashes of their content.

    Every run uploads modules and data again, which is cheap for the server if they exist. The mark of the run is
    uploaded first and read with every response: a server that has lost the mark can have lost the rest.
    """

    standing = "data.policyeng.runs[input.run]"

    def __init__(self, connection: OpaConnection, bundle: Bundle) -> None:
        super().__init__(connection)
        run = secrets.token_hex(16)
        self.extra_input = {"run": run}
        self._mark = f"policyeng/runs/{run}"
        self._digest = bundle.digest
        self.prefix = f"policyeng.bundle_{bundle.digest[:32]}"
        connection.put_document(self._mark, {"digest": bundle.digest})
        connection.put_document(self.prefix.replace(".", "/"), bundle.data)
        _put_modules(connection, _relocated_modules(bundle, self.prefix))

    def require_standing(self, standing: object) -> None:
        """Check that the mark was read, which shows that the server still has our documents."""
        if standing != {"digest": self._digest}:
            raise EngineError("could not decide: the OPA server has lost the mark of this run", remedy="run it again")

    def close(self) -> None:
        """Remove the mark; the bundle stays for the next run, which finds it by its digest."""
        with suppress(EngineError):  # the verdicts are complete; a mark that remains has no effect
            self.connection.delete_document(self._mark)
        super().close()


class ServedPlace(OpaServerBundle):
    """A server that loads the bundle itself; every response includes the revision and digest of its manifest."""

    def __init__(self, connection: OpaConnection, bundle: Bundle, name: str) -> None:
        super().__init__(connection)
        self._bundle, self._name = bundle, name
        self.standing = f"data.system.bundles[{orjson.dumps(name).decode()}].manifest"

    def require_standing(self, standing: object) -> None:
        """Check that the manifest is that of our bundle."""
        require_same(self._bundle, self._name, standing, self.connection.url)


def place_of(bundle: Bundle, options: OpaOptions) -> OpaServerBundle:
    """Load the bundle into a server, or find it there.

    Raises:
        BundleError: its data use a reserved path.
        EngineError: the server cannot be reached, rejects the bundle, or has another.
    """
    require_free(bundle.data, bundle.name)
    if not options.url:
        return PrivatePlace(bundle, options)
    connection = OpaConnection(options)
    try:
        if options.push or (served := _find_served(connection, bundle, options)) is None:
            return PushedPlace(connection, bundle)
        name, manifest = served
        require_same(bundle, name, manifest, connection.url)
        return ServedPlace(connection, bundle, name)
    except BaseException as error:
        connection.close()
        raise _push_error(error) if isinstance(error, OpaRefusedError) else error from None


def bundle_files(bundle: Bundle, secret: str) -> dict[PurePosixPath, bytes]:
    """Return the files of an OPA bundle; modules with the same path from two directories get different paths."""
    files: dict[PurePosixPath, bytes] = {}
    roots = {"system", *bundle.data}
    for number, (path, source) in enumerate(modules_in_v1(bundle)):
        place = PurePosixPath(f"m{number}", path)
        files[place] = source.encode()
        roots.add(package_root(path, source))
    manifest = {"revision": bundle.revision, "rego_version": 1, "roots": sorted(roots)}
    files[PurePosixPath(".manifest")] = orjson.dumps(manifest)
    files[PurePosixPath("data.json")] = orjson.dumps({**bundle.data, "system": {"policyeng": secret}})
    return files


def require_same(bundle: Bundle, name: str, manifest: object, url: str) -> None:
    """Reject a served bundle that is not ours.

    Raises:
        EngineError: the revision or digest differs or is missing.
    """
    revision, digest = _identity(manifest)
    if (revision, digest) == (bundle.revision, bundle.digest):
        return
    place = (url, f"bundle {name}")
    if not digest:
        message = f"could not decide: revision `{revision}` of the served bundle has no policyeng digest"
        raise EngineError(message, place=place, remedy="serve a bundle that `policyeng bundle build` wrote")
    theirs, ours = f"`{revision}` ({digest[:12]})", f"`{bundle.revision}` ({bundle.digest[:12]})"
    message = f"could not decide: the server has revision {theirs} of the bundle, but this run uses {ours}"
    raise EngineError(message, place=place, remedy="use the same policies as the server, or push with `--opa-push`")


def _identity(manifest: object) -> tuple[str, str]:
    if not isinstance(manifest, dict):
        return "", ""
    metadata = manifest.get("metadata")
    ours = metadata.get("policyeng") if isinstance(metadata, dict) else None
    digest = ours.get("digest") if isinstance(ours, dict) else None
    return str(manifest.get("revision", "")), digest if isinstance(digest, str) else ""


def _find_served(connection: OpaConnection, bundle: Bundle, options: OpaOptions) -> tuple[str, JsonObject] | None:
    """Return the name and manifest of the loaded bundle: the named one, or otherwise one from policyeng."""
    found = connection.query("system/bundles", {}).get("result", {})
    entries = found.items() if isinstance(found, dict) else ()
    manifests = {name: entry.get("manifest", {}) for name, entry in entries if isinstance(entry, dict)}
    if options.bundle:
        if options.bundle not in manifests:
            known = ", ".join(f"`{name}`" for name in manifests) or "none"
            message = f"could not decide: the server has not loaded a bundle `{options.bundle}`"
            raise EngineError(message, place=(connection.url,), remedy=f"it has loaded {known}")
        return options.bundle, manifests[options.bundle]
    ours = [name for name, manifest in manifests.items() if _identity(manifest)[1]]
    ours.sort(key=lambda name: _identity(manifests[name]) != (bundle.revision, bundle.digest))
    if ours:
        return ours[0], manifests[ours[0]]
    if options.push is False:
        message = "could not decide: the server has not loaded a policyeng bundle"
        raise EngineError(message, place=(connection.url,), remedy="serve it, or push it with `--opa-push`")
    return None


def _relocated_modules(bundle: Bundle, prefix: str) -> list[tuple[str, str]]:
    folder = prefix.replace(".", "/")
    modules = []
    for number, (path, source) in enumerate(modules_in_v1(bundle)):
        modules.append((f"{folder}/m{number}/{path}", relocated(path, source, prefix)))
    return modules


def _put_modules(connection: OpaConnection, modules: list[tuple[str, str]]) -> None:
    """Upload modules that can call each other: modules that OPA rejects are uploaded again after the others."""
    waiting = modules
    while waiting:
        refused: list[tuple[str, str]] = []
        for identity, source in waiting:
            try:
                connection.put_module(identity, source)
            except OpaRefusedError as error:
                refused.append((identity, source))
                reason = error
        if len(refused) == len(waiting):
            raise reason
        waiting = refused


def _push_error(error: OpaRefusedError) -> EngineError:
    remedy = "serve the bundle from the server itself, or omit `--opa-url`"
    if "owned by bundle" in error.text:
        remedy = "set `roots` of the bundles that the server loads so that they do not include `policyeng`"
    return EngineError(error.message, place=error.place, remedy=remedy)
