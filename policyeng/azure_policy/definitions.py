"""Read definitions, initiatives, assignments and exemptions, in every form in which they are published and exported.

The forms are: the resource of ARM, the flat output of `az policy ... -o json`, lists of both, deployment templates,
`.alz_policy_*.json` of landing-zone libraries, the folders of Enterprise Policy as Code (EPAC), and a rule alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng.errors import BundleError, InputError
from policyeng.models import JsonObject, lowered
from policyeng.parsing.arm_expressions import is_expression
from policyeng.parsing.json_text import parse_json, shortened

#: The ARM types of policies, in lower case.
_PREFIX = "microsoft.authorization/policy"
#: Files of these endings may have policies.
SUFFIXES = (".json", ".jsonc")
_MAX_NESTING = 8
_MAX_BYTES = 64_000_000


@dataclass(frozen=True)
class PolicyDefinition:
    """A definition.

    Attributes:
        name: without its scope; a GUID for built-in definitions.
        parameters: the declarations, by name.
        rule: the object with `if` and `then`.
        place: the file.
        fault: why it cannot be evaluated; empty if there is no reason.
    """

    name: str
    title: str
    description: str
    mode: str
    version: str
    parameters: JsonObject
    rule: JsonObject
    metadata: JsonObject
    place: str
    fault: str = ""

    @property
    def defaults(self) -> dict[str, object]:
        """The default values of parameters, by name in lower case."""
        return defaults_of(self.parameters)


class InitiativeMember(NamedTuple):
    """A member of an initiative: `values` may have expressions with the initiative's parameters."""

    name: str
    id: str
    version: str
    values: JsonObject
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Initiative:
    """An initiative, which is also called a policy set."""

    name: str
    title: str
    version: str
    parameters: JsonObject
    members: tuple[InitiativeMember, ...]
    place: str


@dataclass(frozen=True)
class PolicyAssignment:
    """An assignment of a definition or an initiative.

    Attributes:
        target: the name of what is assigned.
        scope: empty if it is not known.
        messages: by lower-case reference id of a member; under the empty text that of all others.
        overrides: the value of the effect, and the lower-case reference ids that it is for; none for all.
        has_selectors: whether it has resource selectors.
    """

    name: str
    title: str
    target: str
    is_initiative: bool
    version: str
    scope: str
    not_scopes: tuple[str, ...]
    values: JsonObject
    messages: Mapping[str, str]
    overrides: tuple[tuple[str, frozenset[str]], ...]
    is_enforced: bool
    has_selectors: bool
    place: str


@dataclass(frozen=True)
class PolicyExemption:
    """An exemption from an assignment.

    Attributes:
        assignment: its id or name.
        references: lower-case reference ids of members of an initiative; none for all.
        scope: the id of what is exempt.
        expires_at: as it is written.
    """

    name: str
    assignment: str
    references: frozenset[str]
    scope: str
    category: str
    reason: str
    expires_at: str
    place: str


@dataclass
class PolicyDocuments:
    """What was read."""

    definitions: list[PolicyDefinition] = field(default_factory=list)
    initiatives: list[Initiative] = field(default_factory=list)
    assignments: list[PolicyAssignment] = field(default_factory=list)
    exemptions: list[PolicyExemption] = field(default_factory=list)

    def extend(self, other: PolicyDocuments) -> None:
        """Add other documents."""
        self.definitions += other.definitions
        self.initiatives += other.initiatives
        self.assignments += other.assignments
        self.exemptions += other.exemptions

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to evaluate."""
        return not (self.definitions or self.initiatives or self.assignments)


def may_have_policies(path: PurePosixPath) -> bool:
    """Check by its name whether a file may have policies."""
    return path.suffix in SUFFIXES and not any(part.startswith(".git") for part in path.parts)


def read_documents(tree: Mapping[PurePosixPath, bytes], root: Path) -> PolicyDocuments:
    """Read the files of a directory, or one file that is named.

    Files with other JSON are passed over.

    Raises:
        BundleError: a file is not JSON, or a document is not well formed.
    """
    documents = PolicyDocuments()
    rules = len(tree) == 1
    for path, content in sorted(tree.items()):
        place = str(root / path) if str(path) != "." else str(root)
        text = _without_comments(content) if path.suffix == ".jsonc" else content.removeprefix(b"\xef\xbb\xbf")
        try:
            document = parse_json(text, place, max_bytes=_MAX_BYTES)
        except InputError as error:
            raise BundleError(error.message, place=error.place, remedy=error.remedy) from error
        _Reader(documents, place, PurePosixPath(place).name.partition(".")[0], rules=rules).read(document)
    return documents


def _without_comments(content: bytes) -> bytes:
    """Return JSON with comments as JSON: comments, and commas before a closing bracket, become blanks."""
    text, at = content.decode("utf-8-sig", "replace"), 0
    out: list[str] = []
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            out.append(text[at : end + 1])
            at = end + 1
        elif text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif text.startswith("/*", at):
            at = text.find("*/", at) + 2 if "*/" in text[at:] else len(text)
        else:
            if text[at] in "}]":
                while out and (out[-1].isspace() or out[-1] == ","):
                    out.pop()
            out.append(text[at])
            at += 1
    return "".join(out).encode()


class _Reader:
    """Adds what is in a document to the documents."""

    def __init__(self, documents: PolicyDocuments, place: str, stem: str, *, rules: bool) -> None:
        self._documents, self._place, self._stem, self._rules = documents, place, stem, rules

    def read(self, document: object, depth: int = 0, *, is_template: bool = False) -> None:
        """Add a document, and those in it."""
        if depth > _MAX_NESTING:
            return
        if isinstance(document, list):
            for entry in document:
                self.read(entry, depth + 1, is_template=is_template)
            return
        if not isinstance(document, dict):
            return
        if isinstance(document.get("value"), list) and "policyRule" not in document:
            self.read(document["value"], depth + 1)
        elif "resources" in document and ("$schema" in document or depth):
            resources = document["resources"]
            self.read(
                list(resources.values()) if isinstance(resources, dict) else resources, depth + 1, is_template=True
            )
        elif "definitionEntry" in document or "definitionEntryList" in document or "nodeName" in document:
            self._read_tree(document, {}, "", 0)
        else:
            self._read_one(document, depth, is_template=is_template)

    def _read_one(self, document: JsonObject, depth: int, *, is_template: bool) -> None:
        body = document["properties"] if isinstance(document.get("properties"), dict) else document
        template = body.get("template")
        kind = lowered(str(document.get("type", "")))
        if isinstance(template, dict) and kind == "microsoft.resources/deployments":
            self.read(template, depth + 1)
        elif isinstance(body.get("policyRule"), dict):
            self._documents.definitions.append(self._definition(document, body, is_template=is_template))
        elif isinstance(body.get("policyDefinitions"), list):
            self._documents.initiatives.append(self._initiative(document, body))
        elif isinstance(body.get("policyAssignmentId"), str):
            self._documents.exemptions.append(self._exemption(document, body))
        elif isinstance(body.get("policyDefinitionId"), str):
            self._documents.assignments.append(self._assignment(document, body))
        elif self._rules and {"if", "then"} <= document.keys():
            rule: JsonObject = {"policyRule": document}
            self._documents.definitions.append(self._definition({}, rule, is_template=False))
        elif kind.startswith(_PREFIX):
            members = "`policyRule`, `policyDefinitions`, `policyDefinitionId` or `policyAssignmentId`"
            what = f"`{document.get('type')}` has no {members}"
            raise BundleError(what, place=(self._place,), remedy="export it with all of its properties")

    def _name(self, document: JsonObject) -> str:
        name = document.get("name")
        if not isinstance(name, str) or not name:
            identity = document.get("id")
            name = name_in(identity) if isinstance(identity, str) else self._stem
        return name

    def _definition(self, document: JsonObject, body: JsonObject, *, is_template: bool) -> PolicyDefinition:
        name, metadata = self._name(document), _object(body, "metadata")
        computed = next(_computed(body["policyRule"]), None) if is_template else None
        return PolicyDefinition(
            name=name,
            title=_text(body, "displayName") or name,
            description=_text(body, "description"),
            mode=_text(body, "mode") or "Indexed",
            version=_text(body, "version") or _text(metadata, "version"),
            parameters=_object(body, "parameters"),
            rule=_unescaped(body["policyRule"]) if is_template else body["policyRule"],
            metadata=metadata,
            place=self._place,
            fault=f"the deployment template computes `{shortened(computed)}`" if computed else "",
        )

    def _initiative(self, document: JsonObject, body: JsonObject) -> Initiative:
        name = self._name(document)
        members = (entry for entry in body["policyDefinitions"] if isinstance(entry, dict))
        return Initiative(
            name=name,
            title=_text(body, "displayName") or name,
            version=_text(body, "version") or _text(_object(body, "metadata"), "version"),
            parameters=_object(body, "parameters"),
            members=tuple(_member(entry) for entry in members),
            place=self._place,
        )

    def _assignment(self, document: JsonObject, body: JsonObject) -> PolicyAssignment:
        name, target = self._name(document), body["policyDefinitionId"]
        return PolicyAssignment(
            name=name,
            title=_text(body, "displayName") or name,
            target=name_in(target),
            is_initiative="/policysetdefinitions/" in lowered(target),
            version=_text(body, "definitionVersion"),
            scope=_text(body, "scope") or _scope_of(document),
            not_scopes=tuple(map(str, _list(body, "notScopes"))),
            values=_values(_object(body, "parameters")),
            messages=_messages(body),
            overrides=tuple(_overrides(body)),
            is_enforced=lowered(_text(body, "enforcementMode")) != "donotenforce",
            has_selectors=bool(_list(body, "resourceSelectors")),
            place=self._place,
        )

    def _exemption(self, document: JsonObject, body: JsonObject) -> PolicyExemption:
        return PolicyExemption(
            name=self._name(document),
            assignment=body["policyAssignmentId"],
            references=frozenset(lowered(str(entry)) for entry in _list(body, "policyDefinitionReferenceIds")),
            scope=_text(body, "scope") or _scope_of(document),
            category=_text(body, "exemptionCategory"),
            reason=_text(body, "description") or _text(body, "displayName"),
            expires_at=_text(body, "expiresOn"),
            place=self._place,
        )

    def _read_tree(self, node: JsonObject, values: JsonObject, scope: str, depth: int) -> None:
        """Add the assignments of a tree of EPAC, whose nodes hand on scopes and parameters."""
        if depth > _MAX_NESTING:
            return
        values = {**values, **_object(node, "parameters")}
        scopes = _object(node, "scope")
        scope = next((str(entry[0]) for entry in scopes.values() if isinstance(entry, list) and entry), scope)
        entries = [node["definitionEntry"]] if isinstance(node.get("definitionEntry"), dict) else []
        entries += [entry for entry in _list(node, "definitionEntryList") if isinstance(entry, dict)]
        for entry in entries:
            target = next(
                (
                    str(entry[key])
                    for key in ("policySetName", "policySetId", "initiativeName", "policyName", "policyId")
                    if key in entry
                ),
                "",
            )
            stated = {**_object(node, "assignment"), **_object(entry, "assignment")}
            is_set = not {"policySetName", "policySetId", "initiativeName"}.isdisjoint(entry)
            folder = "policySetDefinitions" if is_set else "policyDefinitions"
            body: JsonObject = {
                **node,
                "policyDefinitionId": f"/providers/Microsoft.Authorization/{folder}/{name_in(target)}",
                "parameters": {key: {"value": value} for key, value in values.items()},
                "scope": scope,
                "displayName": _text(stated, "displayName"),
                "notScopes": [],
            }
            self._documents.assignments.append(self._assignment({"name": _text(stated, "name")}, body))
        for child in _list(node, "children"):
            if isinstance(child, dict):
                self._read_tree(child, values, scope, depth + 1)


def defaults_of(parameters: JsonObject) -> dict[str, object]:
    """Return the default values of declared parameters, by name in lower case."""
    return {
        lowered(name): entry["defaultValue"]
        for name, entry in parameters.items()
        if isinstance(entry, dict) and "defaultValue" in entry
    }


def name_in(identity: str) -> str:
    """Return the last part of an id, or of an expression that makes one."""
    return identity.rstrip("/'])} ").rpartition("/")[2].rpartition("'")[2].strip()


def _member(entry: JsonObject) -> InitiativeMember:
    name = name_in(_text(entry, "policyDefinitionId") or _text(entry, "policyDefinitionName"))
    return InitiativeMember(
        name=name,
        id=_text(entry, "policyDefinitionReferenceId") or name,
        version=_text(entry, "definitionVersion"),
        values=_values(_object(entry, "parameters")),
        groups=tuple(str(group) for group in _list(entry, "groupNames")),
    )


def _values(parameters: JsonObject) -> JsonObject:
    return {name: entry["value"] for name, entry in parameters.items() if isinstance(entry, dict) and "value" in entry}


def _messages(body: JsonObject) -> dict[str, str]:
    entries = (entry for entry in _list(body, "nonComplianceMessages") if isinstance(entry, dict))
    return {lowered(_text(entry, "policyDefinitionReferenceId")): _text(entry, "message") for entry in entries}


def _overrides(body: JsonObject) -> Iterator[tuple[str, frozenset[str]]]:
    for entry in _list(body, "overrides"):
        if isinstance(entry, dict) and lowered(_text(entry, "kind")) == "policyeffect":
            references: set[str] = set()
            for selector in _list(entry, "selectors"):
                if isinstance(selector, dict) and lowered(_text(selector, "kind")) == "policydefinitionreferenceid":
                    references.update(lowered(str(name)) for name in _list(selector, "in"))
            yield _text(entry, "value"), frozenset(references)


def _scope_of(document: JsonObject) -> str:
    """Return the scope in the id of an extension resource; empty without an id."""
    identity = document.get("id")
    at = lowered(identity).rfind("/providers/microsoft.authorization/") if isinstance(identity, str) else -1
    return identity[:at] or "/" if isinstance(identity, str) and at >= 0 else ""


def _unescaped(value: object) -> JsonObject:
    """Return a rule of a template without the second bracket that templates need before an expression of the rule."""
    found: JsonObject = _unescape(value)  # type: ignore[assignment]  # it gives an object for an object
    return found


def _computed(value: object) -> Iterator[str]:
    """Yield the texts of a rule in a template that are expressions of the template."""
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _computed(entry)
    if isinstance(value, str) and is_expression(value):
        yield value


def _unescape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unescape(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_unescape(entry) for entry in value]
    return value[1:] if isinstance(value, str) and value.startswith("[[") else value


def _text(holder: JsonObject, name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _object(holder: JsonObject, name: str) -> JsonObject:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _list(holder: JsonObject, name: str) -> list[object]:
    value = holder.get(name)
    return value if isinstance(value, list) else []
