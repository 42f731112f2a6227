"""Template files of a new policy: a header with every field, a placeholder rule and failing cases.

Fields without a sensible default are empty, with a comment that explains them. Until the rule is written, the policy
returns `unknown` for every resource that it evaluates.
"""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from policyeng.bundle.files import TEST_FOLDERS
from policyeng.bundle.header import parse_header
from policyeng.errors import BundleError, UsageError
from policyeng.models import Severity
from policyeng.parsing.json_text import shortened
from policyeng.parsing.yaml_writer import flow

#: The part of an id for each built-in area; for other areas it is the area itself.
AREAS = {
    "isolation": "ISO",
    "network": "NET",
    "rbac": "RBAC",
    "sku": "SKU",
    "inference": "INF",
    "training": "TRN",
    "cost": "COST",
    "operations": "OPS",
    "compute": "CMP",
    "encryption": "ENC",
    "data_access": "DAT",
    "identity": "IDN",
    "endpoints": "END",
    "registries": "REG",
    "jobs": "JOB",
    "logging": "LOG",
    "governance": "GOV",
    "recovery": "DR",
}
#: Names of directories that do not identify the owner of their policies.
_GENERIC = {"BUNDLE", "OPA", "POLICIES", "POLICY", "POLICYENG", "REGO", "RULES"}
_ID = re.compile(r"([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)-([0-9]+)")
#: The longest name of an area or a policy: with a suffix it is a file name everywhere.
_LONGEST = 100
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_REGO_WORDS = frozenset(
    {"as", "contains", "data", "default", "else", "every", "false", "if", "import", "in", "input", "not", "null"}
    | {"package", "set", "some", "true", "with"}
)
#: Folders of a bundle that contain something else, and parts of `data` that are not a bundle's own.
_TAKEN_AREAS = frozenset({"baselines", "facts", "lib", "policyeng", "profiles", "system"}) | TEST_FOLDERS


def split_name(path: str) -> tuple[str, str]:
    """Return the area and the name of `AREA/NAME`.

    Raises:
        UsageError: it is no such path, or a part cannot name a folder and a package.
    """
    parts = path.split("/")
    if len(parts) != 2:
        remedy = "name the area and the policy, such as `network/private_endpoints`"
        raise UsageError(f"`{path}` is not AREA/NAME", remedy=remedy)
    area, name = parts
    for part in parts:
        if len(part) > _LONGEST:
            what = f"the name `{shortened(part, 40)}` has {len(part)} characters, and a name has at most {_LONGEST}"
            raise UsageError(what, remedy="name the requirement in a few words; details belong in the title")
        if not _NAME.fullmatch(part) or part in _REGO_WORDS or keyword.iskeyword(part):
            suggested = "/".join(_suggested(each) for each in parts)
            what = f"`{part}` cannot name a folder and a package; `{suggested}` would do"
            remedy = "names are lower-case letters, digits and `_`, and no word of Rego or Python"
            raise UsageError(what, remedy=remedy)
    if area in _TAKEN_AREAS:
        remedy = "name another area, such as `acme`"
        raise UsageError(f"`{area}` holds something else than policies", remedy=remedy)
    if area in set(Severity):
        what = f"`{area}` is a severity, and `--select {area}` would no longer choose by it"
        raise UsageError(what, remedy="name another area, such as `acme`")
    if name.startswith("test_") or name.endswith("_test") or name == "conftest":
        raise UsageError(f"`{name}` would be taken for a test", remedy="name what the policy asks for")
    return area, name


def title_of(name: str) -> str:
    """Return a title to begin with: the name in words."""
    return name.replace("_", " ").strip().capitalize()


def next_id(area: str, in_area: Iterable[str], elsewhere: Iterable[str], directory: str) -> str:
    """Return the id after the highest that the area has.

    Args:
        area: the area of the new policy.
        in_area: the ids of the area's policies; the new id gets the prefix that most of them share.
        elsewhere: the other ids of the directory, which provide the prefix if the area has none.
        directory: its name, which provides the prefix if there are no ids.
    """
    ours, others = _group_numbers(in_area), _group_numbers(elsewhere)
    if ours:
        prefix = max(ours, key=lambda known: len(ours[known]))
    else:
        owners = [known.partition("-")[0] for known, numbers in others.items() for _ in numbers]
        owner = max(owners, key=owners.count) if owners else _owner(directory)
        prefix = f"{owner}-{AREAS.get(area, re.sub('[^A-Z0-9]', '', area.upper()))}"
    numbers = ours.get(prefix, []) + others.get(prefix, [])
    highest = max(numbers, key=int, default="000")
    return f"{prefix}-{int(highest) + 1:0{len(highest)}}"


def _group_numbers(ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the numbers of ids by their prefix."""
    found: dict[str, list[str]] = {}
    for identity in ids:
        parts = _ID.fullmatch(identity)
        if parts:
            found.setdefault(parts[1], []).append(parts[2])
    return found


def _owner(directory: str) -> str:
    first = re.match(r"[A-Z][A-Z0-9]*", directory.upper())
    return first[0] if first and first[0] not in _GENERIC else "ORG"


def _suggested(part: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_")
    if not re.match("[a-z]", name):
        return f"a_{name}".rstrip("_")
    return f"{name}_" if name in _REGO_WORDS or keyword.iskeyword(name) else name


Language = Literal["rego", "python"]


@dataclass(frozen=True)
class Subject:
    """The resource type that a new policy evaluates, with an example field.

    Attributes:
        type: an ARM type, `workload` or `approval`.
        field: the steps to the field: one or two.
        case: the first line of `cases.yaml`, which names the evaluated resource.
        edit: the YAML of a case that sets the field to `VALUE`.
        where: an example of a pointer and a value that select some resources of the type.
    """

    type: str
    case: str
    field: tuple[str, ...] = ("properties", "x")
    edit: str = "patch: {properties: {x: VALUE}}"
    where: tuple[str, str] = ("/properties/x", "value")


@dataclass(frozen=True)
class Scaffold:
    """The header of a policy that is not written yet.

    Attributes:
        since: the first version with it, if known.
        schema: the path from `cases.yaml` to its JSON Schema, for editors; empty without one.
    """

    area: str
    name: str
    language: Language
    id: str
    title: str
    severity: str
    subject: Subject
    since: str = ""
    schema: str = ""

    def files(self) -> dict[str, str]:
        """Return the files by path within the bundle.

        Raises:
            UsageError: a field does not fit into a header.
        """
        fields = {"id": self.id, "title": self.title, "severity": self.severity, "judges": [self.subject.type]}
        try:
            parse_header(fields, "")
        except BundleError as error:
            raise UsageError(error.message, remedy=error.remedy) from error
        stem = f"{self.area}/{self.name}/{self.name}"
        rule = (f"{stem}.rego", self._rego()) if self.language == "rego" else (f"{stem}.py", self._python())
        return {rule[0]: rule[1], f"{self.area}/{self.name}/cases.yaml": self._cases()}

    def _rego(self) -> str:
        return _REGO.format(
            title=flow(self.title),
            id=self.id,
            severity=self.severity,
            type=self.subject.type,
            since=flow(self.since),
            package=f"{self.area}.{self.name}",
            pointer=self._pointer,
            steps=json.dumps(self.subject.field),
            where=f"{self.subject.where[0]}: [{self.subject.where[1]}]",
        )

    def _python(self) -> str:
        *outer, last = (json.dumps(step) for step in self.subject.field)
        found = f"found = given.resource.get({last})"
        if outer:
            below = f"found = within.get({last}) if isinstance(within, dict) else None"
            found = f"within = given.resource.get({outer[0]})\n    {below}"
        return _PYTHON.format(
            doc=self._documented.rstrip("."),
            title=repr(self.title) if '"' in self.title else json.dumps(self.title, ensure_ascii=False),
            id=self.id,
            severity=self.severity,
            type=self.subject.type,
            since=self.since,
            name=self.name,
            pointer=self._pointer,
            found=found,
            where=f'"{self.subject.where[0]}": ["{self.subject.where[1]}"]',
        )

    def _cases(self) -> str:
        edits = {
            name: self.subject.edit.replace("VALUE", value)
            for name, value in (
                ("right", "the required value"),
                ("wrong", "a wrong value"),
                ("over", "a value just over the limit"),
            )
        }
        comment = f"# yaml-language-server: $schema={self.schema}\n" if self.schema else ""
        return comment + _CASES.format(case=self.subject.case, pointer=self._pointer, **edits)

    @property
    def _documented(self) -> str:
        """The title, or a name if the title has characters that a docstring must escape."""
        plain = self.title.isprintable() and not set(self.title) & {'"', "\\"}
        return self.title if plain else title_of(self.name)

    @property
    def _pointer(self) -> str:
        return "/" + "/".join(self.subject.field)


_REGO = textwrap.dedent(
    """\
    # METADATA
    # scope: package
    # title: {title} # the compliant situation, in the present tense
    # description: "" # the reason; quote the requirement
    # related_resources: [] # further reading: [{{ref: https://...}}]
    # custom:
    #   id: {id}
    #   severity: {severity} # info, low, medium, high or critical
    #   judges:
    #     - type: {type}
    #       where: {{}} # to select some of them: {{{where}}}
    #   remediation: null # {{text: the setting or command that fixes a failure}}, and with a `patch` a JSON Patch
    #   source: "" # the document and its section
    #   controls: {{}} # {{framework: [ids]}}
    #   parameters: {{}} # {{most: {{type: integer, default: 0, description: what it means}}}}
    #   since: {since} # the first version with it
    #   exemptable: true # false if exemptions are not allowed
    package {package}

    # Describe what is not allowed. Keep `msg` constant, and put values that vary into `actual`.
    deny contains {{
    \t"msg": "the problem",
    \t"path": "{pointer}",
    \t"actual": found,
    \t"expected": "the required value",
    }} if {{
    \tfound == "a forbidden value"
    }}

    found := object.get(input.resource, {steps}, null)

    # Remove this when the rule is complete, or keep it for inputs that cannot be decided.
    unknown contains {{"msg": "this policy is not written yet", "path": "{pointer}"}}
    """
)
_PYTHON = textwrap.dedent(
    '''\
    """{doc}."""

    from collections.abc import Iterator

    from policyeng import Denial, PolicyInput, Unknown, policy


    @policy(
        id="{id}",
        # The compliant situation, in the present tense.
        title={title},
        description="",  # the reason; quote the requirement
        related_resources=[],  # further reading, as URLs
        severity="{severity}",  # info, low, medium, high or critical
        # To select some of them: {{"type": "...", "where": {{{where}}}}}
        judges=["{type}"],
        remediation=None,  # {{"text": "the setting or command that fixes a failure"}}, and with a "patch" a JSON Patch
        source="",  # the document and its section
        controls={{}},  # {{"framework": ["ids"]}}
        parameters={{}},  # {{"most": {{"type": "integer", "default": 0, "description": "what it means"}}}}
        since="{since}",  # the first version with it
        exemptable=True,  # False if exemptions are not allowed
        applies=None,  # a function of the input; no finding where it returns False
    )
    def {name}(given: PolicyInput) -> Iterator[Denial | Unknown]:
        """Report forbidden values."""
        {found}
        if found == "a forbidden value":
            yield Denial(msg="the problem", path="{pointer}", actual=found, expected="the required value")
        # Remove this when the function is complete, or keep it for inputs that cannot be decided.
        yield Unknown(msg="this policy is not written yet", path="{pointer}")
    '''
)
_CASES = textwrap.dedent(
    """\
    {case}
    # The outcome if a field that the policy reads is missing; `policyeng test` prints the lines to add.
    absent:
      {pointer}: unknown
    # Each case edits the baseline above, and other resources under `with`; `patch` is a JSON Merge Patch.
    pass:
      a compliant resource: {{{right}}}
    fail:
      a wrong value: {{{wrong}, path: {pointer}}}
      a value just over the limit: {{{over}, path: {pointer}}}
    """
)
