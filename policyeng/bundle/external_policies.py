"""Policies without our header: Conftest rules, and Gatekeeper templates with their constraints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng.bundle.analysis import AnalyzedRule
from policyeng.bundle.constraint_match import ConstraintMatch
from policyeng.bundle.files import TEST_FOLDERS, is_gatekeepers, text_of
from policyeng.bundle.header import PolicyHeader, TargetType, metadata_blocks
from policyeng.bundle.left_out import LeftOutModule
from policyeng.bundle.manifest import bundle_manifests, bundle_yaml
from policyeng.bundle.policy_types import InputForm, Policy, Role
from policyeng.bundle.rego_trees import DENYING, Outline
from policyeng.errors import BundleError
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, Severity
from policyeng.rego.paths import split_package, write_part

_DENYING = lazy_pattern(rf"({'|'.join(DENYING)})(?:_([a-zA-Z0-9_]*[a-zA-Z0-9]))?")
#: Input that only policyeng policies read: without a header they would be evaluated on the wrong input.
_OURS = lazy_pattern(r"input\.(resource\.(id|identity|kind|location|name|properties|sku|tags|type)|snapshot|as_of)\b")
#: The forms of a denying rule that Conftest treats as passed.
_NO_MESSAGES = {
    "true": "returns only true",
    "map": "has more than its name in its head",
    "function": "is a function, which is never called",
}


class ForeignHeader(PolicyHeader, frozen=True, kw_only=True):
    """The header that a policy of others is given: its id is its package and rule, `main.deny_run_as_root`."""

    id: str


def find_foreign_policies(
    outlines: Sequence[Outline], given: Iterable[str], ours: Collection[str], reviewing: Collection[str] = ()
) -> list[Policy]:
    """Return one policy per denying rule of the packages without a policyeng header.

    Args:
        outlines: the modules of all roots.
        given: the keys at the top of `data`.
        ours: the packages of policies that carry our header.
        reviewing: the packages of Gatekeeper's templates, whose input is a review whatever their text looks at.

    Raises:
        BundleError: a rule has a form that gives no reasons, or a library reads what only Conftest fills.
    """
    packages: dict[str, list[Outline]] = {}
    for outline in outlines:
        if outline.package not in ours and not TEST_FOLDERS & set(outline.path.parts[:-1]):
            packages.setdefault(outline.package, []).append(outline)
    denying = {
        package: modules
        for package, modules in packages.items()
        if any(_find_denying_rules(module) for module in modules)
    }
    if denying:
        _refuse_conftest_data(outlines)
    keys, libraries = frozenset(given), _Libraries(outlines)
    found: list[Policy] = []
    for package, modules in denying.items():
        reads = libraries.reads(modules)
        form: InputForm = "review" if package in reviewing else _input_form(modules, reads)
        undecided = _undecided(modules, form, keys, reads)
        found += (replace(policy, undecided=undecided) for policy in _of_package(package, modules, form))
    return found


def left_out_policies(left_out: Iterable[LeftOutModule], ids: Collection[str]) -> list[Policy]:
    """Return a policy for each denying rule of modules that do not parse, and at least one for each module.

    Args:
        left_out: the modules.
        ids: of the policies that other modules define, too.
    """
    policies: dict[str, Policy] = {}
    for module in left_out:
        named = sorted(name for name in module.names if _DENYING.fullmatch(name))
        for name in named or [PurePosixPath(module.path).stem]:
            identity = f"{module.package}.{name}"
            if identity in ids or identity in policies:
                continue
            severity = Severity.INFO if name.startswith("warn") else Severity.HIGH
            header = ForeignHeader(
                id=identity, title=identity, severity=severity, judges=(TargetType(type="document"),)
            )
            rules: tuple[tuple[Role, str], ...] = (("deny", f"data.{module.package}{write_part(name)}"),)
            policy = Policy(header, "", identity, module.path, rules=rules, input_form="document")
            policies[identity] = replace(policy, fault=module.reason)
    return list(policies.values())


def exception_name(rule: str) -> str:
    """Return the name by which an `exception` rule excludes a denying rule: `run_as_root` for `deny_run_as_root`."""
    named = _DENYING.fullmatch(rule)
    return (named[2] or "") if named else rule


def _find_denying_rules(module: Outline) -> list[AnalyzedRule]:
    """Return the rules with a denying name, including functions."""
    return [rule for rule in module.rules if _DENYING.fullmatch(rule.name)]


class _Libraries:
    """The modules of a bundle by the references that reach them."""

    def __init__(self, outlines: Iterable[Outline]) -> None:
        self._at: dict[str, list[Outline]] = {}
        self._under: dict[str, list[Outline]] = {}
        for outline in outlines:
            path = ".".join(["data", *split_package(outline.package)])
            self._at.setdefault(path, []).append(outline)
            for above in _list_prefixes(path):
                self._under.setdefault(above, []).append(outline)

    def reads(self, modules: Iterable[Outline]) -> set[str]:
        """Return what modules read, by way of others too."""
        reads: set[str] = set()
        pending = {read for module in modules for read in module.reads}
        while pending:
            read = pending.pop()
            reads.add(read)
            reached = [
                *self._under.get(read, ()),
                *(each for at in _list_prefixes(read) for each in self._at.get(at, ())),
            ]
            pending |= {further for outline in reached for further in outline.reads} - reads
        return reads


def _list_prefixes(path: str) -> Iterator[str]:
    """`data.a` and `data.a.b` of `data.a.b`: below `data` alone lies everything."""
    parts = path.split(".")
    return (".".join(parts[:length]) for length in range(2, len(parts) + 1))


def _undecided(modules: Sequence[Outline], form: InputForm, given: frozenset[str], reads: Iterable[str]) -> str:
    """Return why a package cannot be evaluated: it needs input or data of Gatekeeper or Conftest."""
    for read in sorted(reads):
        if f"{read}.".startswith("data.inventory.") and "inventory" not in given:
            return f"the policy reads `{read}`, which Gatekeeper fills from the cluster; give it with `--data`"
        if read.startswith("data.conftest."):
            return f"the policy reads `{read}`, which only Conftest fills"
    if form == "document" and _violates(modules) and _uses_whole_input(modules):
        return (
            "the policy takes `input` as a whole, which may be Gatekeeper's review or the document; "
            "read `input.review` or a part of the document by name, or put it into a `ConstraintTemplate`"
        )
    return ""


def _violates(modules: Iterable[Outline]) -> bool:
    return any(rule.name.startswith("violation") for module in modules for rule in _find_denying_rules(module))


def _uses_whole_input(modules: Sequence[Outline]) -> bool:
    """Return whether a package uses `input` only as a whole, and never one of its members."""
    reads = {read for module in modules for read in module.reads}
    return "input" in reads and not any(read.startswith("input.") for read in reads)


def _refuse_conftest_data(outlines: Iterable[Outline]) -> None:
    """Refuse a library that reads it, because which policies do is then unknown."""
    for outline in outlines:
        if any(read.startswith("data.conftest.") for read in outline.reads) and not _find_denying_rules(outline):
            message = "the module reads `data.conftest`, which only Conftest fills"
            raise BundleError(message, place=(outline.place,), remedy="leave it out")


def _of_package(package: str, modules: Sequence[Outline], form: InputForm) -> Iterator[Policy]:
    rules: dict[str, list[tuple[Outline, AnalyzedRule]]] = {}
    for module in modules:
        _refuse_forgotten_header(module, form)
        for rule in _find_denying_rules(module):
            _refuse_form(module, rule)
            rules.setdefault(rule.name, []).append((module, rule))
    excepting = any(rule.name == "exception" for module in modules for rule in module.rules)
    for name, places in rules.items():
        first = places[0][0].path
        roles: list[tuple[Role, str]] = [("deny", f"data.{package}.{name}")]
        if excepting:
            roles.append(("exception", f"data.{package}.exception"))
        area = first.parts[0] if len(first.parts) > 1 else ""
        header = _header(package, name, places)
        policy = Policy(header, area, f"{package}.{name}", str(first), rules=tuple(roles))
        yield replace(policy, input_form=form)


def _input_form(modules: Sequence[Outline], reads: Iterable[str]) -> InputForm:
    """`review` for a package that looks at a review or its parameters and at nothing else by name.

    One that does not look at `input` itself is what its libraries, among all that it `reads`, look at.

    Raises:
        BundleError: it looks at both, so that on either input some of its rules would find nothing.
    """
    own = {read for module in modules for read in module.reads if f"{read}.".startswith("input.")}
    parts = {read.split(".")[1] for read in own or reads if read.startswith("input.")}
    others = parts - {"review", "parameters"}
    if not parts or not _violates(modules):
        return "document"
    if not own:
        return "review" if parts & {"review"} and not others else "document"
    if others and "review" in parts:
        what = f"the package reads `input.review`, which Gatekeeper gives, and `input.{min(others)}` of a document"
        remedy = "put the rules for Gatekeeper into a package of their own"
        raise BundleError(what, place=tuple(module.place for module in modules), remedy=remedy)
    return "document" if others else "review"


def _refuse_forgotten_header(module: Outline, form: InputForm) -> None:
    custom = module.metadata.get("custom") if isinstance(module.metadata, dict) else None
    ours = isinstance(custom, dict) and bool({"judges", "inspects", "when_absent", "exemptable"} & set(custom))
    own_input = form == "document" and any(_OURS.match(read) for read in module.reads)
    if _find_denying_rules(module) and own_input and isinstance(custom, dict) and "id" in custom:
        remedy = "add `judges` with the types that the policy evaluates"
        raise BundleError(
            "the module reads what our policies read, and its header has no `judges`",
            place=(module.place,),
            remedy=remedy,
        )
    if _find_denying_rules(module) and (ours or own_input):
        remedy = "give it a `# METADATA` block directly above `package`, with `custom` and its `id`"
        raise BundleError(
            "the module reads what our policies read and carries no policy header", place=(module.place,), remedy=remedy
        )


def _refuse_form(module: Outline, rule: AnalyzedRule) -> None:
    what = _NO_MESSAGES.get(rule.form)
    if what:
        remedy = f"write `{rule.name} contains msg if ...`, or `{rule.name}[msg] {{ ... }}` in Rego v0"
        place = f"{module.place}:{rule.line}"
        raise BundleError(f"the rule `{rule.name}` {what}, so it gives no messages", place=(place,), remedy=remedy)


def _header(package: str, name: str, places: Sequence[tuple[Outline, AnalyzedRule]]) -> ForeignHeader:
    """Return a header from the METADATA above the rule, or else above the package."""
    above = [entry for module, rule in places if (entry := _above_rule(module, rule))]
    whole = next((module.metadata for module, _ in places if isinstance(module.metadata, dict)), {})
    metadata: JsonObject = above[0] if len(above) == 1 and len(places) == 1 else whole
    fields = {
        "id": f"{package}.{name}",
        "title": _title(metadata) or f"{package}: {name}",
        "description": _text(metadata.get("description")),
        "severity": _severity(name, above or [whole]),
        "judges": ["document"],
    }
    try:
        return ForeignHeader.model_validate({**fields, "related_resources": metadata.get("related_resources", [])})
    except ValueError:
        return ForeignHeader.model_validate(fields)


def _above_rule(module: Outline, rule: AnalyzedRule) -> JsonObject | None:
    for text, below in metadata_blocks(module.source):
        if below == rule.line:
            metadata = bundle_yaml(text, module.place)
            return metadata if isinstance(metadata, dict) else None
    return None


def _title(metadata: JsonObject) -> str:
    title = _text(metadata.get("title")).strip()
    return title if len(title) <= 150 else f"{title[:149]}…"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _severity(name: str, metadata: Sequence[JsonObject]) -> Severity:
    """Return the highest that METADATA names; else `info` for `warn` rules, which fail no run, and `high`."""
    if name.startswith("warn"):
        return Severity.INFO
    named = []
    for entry in metadata:
        custom = entry.get("custom")
        severity = custom.get("severity") if isinstance(custom, dict) else None
        if isinstance(severity, str) and severity.lower() in set(Severity):
            named.append(Severity(severity.lower()))
    return max(named, key=lambda severity: severity.rank, default=Severity.HIGH)


class ConstraintTemplate(NamedTuple):
    """A template: the `kind` of its constraints, empty where it states none, and the place of its module."""

    kind: str
    module: str
    place: str


class Constraint(NamedTuple):
    """A constraint of a `kind`: `warns` if its enforcement never denies."""

    kind: str
    name: str
    folder: PurePosixPath
    place: str
    match: ConstraintMatch
    parameters: JsonObject
    warns: bool


def with_templates(
    root: Path, tree: Mapping[PurePosixPath, bytes]
) -> tuple[dict[PurePosixPath, bytes], list[ConstraintTemplate]]:
    """Return the files of a root and the Rego modules inside its constraint templates.

    A module that is also a file next to its template is read from that file.

    Raises:
        BundleError: a template has no Rego, or two templates have different libraries of one package.
    """
    whole = dict(tree)
    templates: list[ConstraintTemplate] = []
    libraries: dict[str, bytes] = {}
    present = {
        content.strip(): path
        for path, content in sorted(tree.items())
        if path.suffix == ".rego" and not _in_tests(path)
    }
    for path, template in _documents(root, tree):
        if template.get("kind") != "ConstraintTemplate":
            continue
        place = str(root / path)
        name = _find_free_name(path, whole)
        for number, source in enumerate(_sources(template, place)):
            content = source.encode()
            package = next((line for line in source.splitlines() if line.startswith("package ")), "")
            if number and libraries.setdefault(package, content) != content:
                message = f"another template has a different library as `{package}`; Gatekeeper isolates them"
                raise BundleError(message, place=(place,), remedy="use one template at a time")
            called = f"{name}.lib{number}.rego" if number else f"{name}.rego"
            module = present.setdefault(content.strip(), path.with_name(called))
            whole.setdefault(module, content)
            if not number:
                kind = _at(template, "spec", "crd", "spec", "names", "kind")
                templates.append(ConstraintTemplate(kind if isinstance(kind, str) else "", str(root / module), place))
    return whole, templates


def kinds_of(templates: Iterable[ConstraintTemplate], outlines: Iterable[Outline]) -> dict[str, set[str]]:
    """Return the kinds of constraints by the package of their template.

    Raises:
        BundleError: a template has no `violation`, the only rule that Gatekeeper evaluates.
    """
    at = {outline.place: outline for outline in outlines}
    kinds: dict[str, set[str]] = {}
    for template in templates:
        outline = at.get(template.module)
        if outline is None or not any(rule.name == "violation" for rule in outline.rules):
            remedy = "call the rule `violation`: Gatekeeper judges by no other"
            raise BundleError("the template has no rule `violation`", place=(template.place,), remedy=remedy)
        kinds.setdefault(outline.package, set()).add(template.kind)
    return kinds


def constraints_of(root: Path, tree: Mapping[PurePosixPath, bytes]) -> list[Constraint]:
    """Return the constraints of a root.

    Raises:
        BundleError: one of them is not well formed.
    """
    found = []
    for path, document in _documents(root, tree):
        if not str(document.get("apiVersion", "")).startswith("constraints.gatekeeper.sh/"):
            continue
        spec, metadata = document.get("spec") or {}, document.get("metadata") or {}
        try:
            match = ConstraintMatch.of(spec.get("match") or {})
            parameters = dict(spec.get("parameters") or {})
            name = _text_of_document(metadata["name"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "give it `metadata.name`, and `spec.match` and `spec.parameters` as Gatekeeper takes them"
            reason = f": {error}" if type(error) is ValueError else ""
            what = f"the constraint is not well formed{reason}"
            raise BundleError(what, place=(str(root / path),), remedy=remedy) from error
        kind, place = str(document.get("kind", "")), str(root / path)
        warns = spec.get("enforcementAction", "deny") in ("warn", "dryrun")
        found.append(Constraint(kind, name, path.parent, place, match, parameters, warns))
    return found


def refuse_undeclared(constraints: Iterable[Constraint], kinds: Mapping[str, set[str]]) -> None:
    """Refuse a constraint without a template.

    Raises:
        BundleError: no template declares its kind.
    """
    declared = set().union(*kinds.values()) - {""}
    for constraint in constraints:
        if constraint.kind not in declared:
            message = (
                f"the constraint `{constraint.name}` is of the kind `{constraint.kind}`, which no template declares"
            )
            remedy = "give the template with this kind under `spec.crd.spec.names`, too, or leave the constraint out"
            raise BundleError(message, place=(constraint.place,), remedy=remedy)


def constrained(policy: Policy, constraints: Iterable[Constraint], kinds: Mapping[str, set[str]]) -> Iterator[Policy]:
    """Yield the policy of a template once for every constraint of its kind; as it is where there is none."""
    own = kinds.get(policy.package, set())
    of_kind = [entry for entry in constraints if entry.kind in own]
    names = Counter(entry.name for entry in of_kind)
    for entry in of_kind:
        called = entry.name if names[entry.name] == 1 else f"{entry.name}@{entry.folder.name}"
        update: dict[str, object] = {
            "id": f"{policy.id}.{called}",
            "parameters": {name: {"default": value} for name, value in entry.parameters.items()},
        }
        kind_names = {name for listed in entry.match.kinds for name in listed.kinds or {"*"}}
        if kind_names and "*" not in kind_names:
            update["judges"] = (TargetType(type="document", where={"/kind": tuple(sorted(kind_names))}),)
        if entry.warns:
            update["severity"] = Severity.INFO
        header = policy.header.model_copy(update=update)
        yield replace(policy, header=header, name=f"{policy.name}.{called}", match=entry.match)
    if not of_kind:
        yield policy


def _documents(root: Path, tree: Mapping[PurePosixPath, bytes]) -> Iterator[tuple[PurePosixPath, JsonObject]]:
    """Yield the objects in the files that may be Gatekeeper's, those of a `List` one by one; tests have no policies."""
    for path, content in sorted(tree.items()):
        if is_gatekeepers(path, content) and not _in_tests(path):
            pending = bundle_manifests(text_of(content, root / path), str(root / path))
            for document in pending:
                if isinstance(document, dict) and document.get("kind") == "List":
                    items = document.get("items")
                    pending += items if isinstance(items, list) else ()
                elif isinstance(document, dict):
                    yield path, document


def _in_tests(path: PurePosixPath) -> bool:
    return bool(TEST_FOLDERS & set(path.parts[:-1]))


def _find_free_name(path: PurePosixPath, taken: Mapping[PurePosixPath, bytes]) -> str:
    """Return the name for the module of the next template in a file: `all.yaml`, `all.yaml.2` ..."""
    names = (f"{path.name}.{number}" if number > 1 else path.name for number in count(1))
    return next(name for name in names if path.with_name(f"{name}.rego") not in taken)


def _text_of_document(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _at(document: object, *names: str) -> object:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _sources(template: JsonObject, place: str) -> Iterator[str]:
    """Yield the module of a template, then its libraries."""
    candidates: list[object] = []
    targets = _at(template, "spec", "targets")
    for target in targets if isinstance(targets, list) else ():
        codes = _at(target, "code")
        rego = (code for code in (codes if isinstance(codes, list) else ()) if _at(code, "engine") == "Rego")
        candidates += [target, *(_at(code, "source") for code in rego)]
    sources = [source for source in candidates if isinstance(source, dict) and isinstance(source.get("rego"), str)]
    if len(sources) != 1:
        message = f"the template has {len(sources)} targets with Rego"
        raise BundleError(message, place=(place,), remedy="add exactly one target with `rego`; CEL is not supported")
    libraries = sources[0].get("libs") or []
    if not isinstance(libraries, list) or not all(isinstance(library, str) for library in libraries):
        raise BundleError(
            "`libs` of the template is not a list of modules", place=(place,), remedy="write modules as text"
        )
    yield sources[0]["rego"]
    yield from libraries
