"""Template files of a new policy: a header with every field, a placeholder rule and failing cases.

What has no sensible default is left empty, with a comment that says what belongs there. Until the rule is written the
policy says `unknown` of everything that it judges.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import Literal

from policyeng.bundle.header import parse_header
from policyeng.bundle.policy_ids import title_of
from policyeng.errors import BundleError, UsageError
from policyeng.parsing.yaml_writer import flow

Language = Literal["rego", "python"]


@dataclass(frozen=True)
class Subject:
    """The resource type that a new policy evaluates, with an example field.

    Attributes:
        type: an ARM type, `workload` or `approval`.
        field: the steps to the field: one or two.
        case: the first line of `cases.yaml`, which names what is judged.
        edit: what gives the field the value `VALUE` in a case, as YAML.
        where: a pointer and a value that would narrow it, as an example.
    """

    type: str
    case: str
    field: tuple[str, ...] = ("properties", "x")
    edit: str = "patch: {properties: {x: VALUE}}"
    where: tuple[str, str] = ("/properties/x", "value")


@dataclass(frozen=True)
class Scaffold:
    """What is known of a policy before it is written; `since` is the version that will have it, if anybody knows."""

    area: str
    name: str
    language: Language
    id: str
    title: str
    severity: str
    subject: Subject
    since: str = ""

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
                ("right", "what should be there"),
                ("wrong", "something wrong"),
                ("over", "just over the boundary"),
            )
        }
        return _CASES.format(case=self.subject.case, pointer=self._pointer, **edits)

    @property
    def _documented(self) -> str:
        """What a docstring takes as it stands."""
        plain = self.title.isprintable() and not set(self.title) & {'"', "\\"}
        return self.title if plain else title_of(self.name)

    @property
    def _pointer(self) -> str:
        return "/" + "/".join(self.subject.field)


_REGO = textwrap.dedent(
    """\
    # METADATA
    # scope: package
    # title: {title} # what holds when all is well, in the present tense
    # description: "" # why; quote the sentence that asks for it
    # related_resources: [] # pages that explain more: [{{ref: https://...}}]
    # custom:
    #   id: {id}
    #   severity: {severity} # info, low, medium, high or critical
    #   judges:
    #     - type: {type}
    #       where: {{}} # narrows it: {{{where}}}
    #   remediation: null # {{text: the setting or the command that mends it}}, and with a `patch` a JSON Patch
    #   source: "" # the document and its section
    #   controls: {{}} # {{framework: [ids]}}
    #   parameters: {{}} # {{most: {{type: integer, default: 0, description: what it means}}}}
    #   since: {since} # the first version with it
    #   exemptable: true # false when no exemption may cover it
    package {package}

    # Say here what must not be. The message is constant, what varies stands in `actual`.
    deny contains {{
    \t"msg": "what is wrong",
    \t"path": "{pointer}",
    \t"actual": found,
    \t"expected": "what should be there",
    }} if {{
    \tfound == "what must not be"
    }}

    found := object.get(input.resource, {steps}, null)

    # Take this away when the rule is written, or keep it for what cannot be decided.
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
        # What holds when all is well, in the present tense.
        title={title},
        description="",  # why; quote the sentence that asks for it
        related_resources=[],  # pages that explain more, as URLs
        severity="{severity}",  # info, low, medium, high or critical
        # Or narrowed: {{"type": "...", "where": {{{where}}}}}
        judges=["{type}"],
        remediation=None,  # {{"text": "the setting or the command that mends it"}}, and with a "patch" a JSON Patch
        source="",  # the document and its section
        controls={{}},  # {{"framework": ["ids"]}}
        parameters={{}},  # {{"most": {{"type": "integer", "default": 0, "description": "what it means"}}}}
        since="{since}",  # the first version with it
        exemptable=True,  # False when no exemption may cover it
        applies=None,  # a function of the input: where it is false, there is no finding
    )
    def {name}(given: PolicyInput) -> Iterator[Denial | Unknown]:
        """Deny what must not be."""
        {found}
        if found == "what must not be":
            yield Denial(msg="what is wrong", path="{pointer}", actual=found, expected="what should be there")
        # Take this away when the function is written, or keep it for what cannot be decided.
        yield Unknown(msg="this policy is not written yet", path="{pointer}")
    '''
)
_CASES = textwrap.dedent(
    """\
    {case}
    # The outcome without each field that the policy reads; `policyeng test` prints the lines that are missing.
    absent:
      {pointer}: unknown
    # Each case edits what is named above, and other resources under `with`; `patch` is a JSON Merge Patch.
    pass:
      what is as it should be: {{{right}}}
    fail:
      something wrong: {{{wrong}, path: {pointer}}}
      just over the boundary: {{{over}, path: {pointer}}}
    """
)
