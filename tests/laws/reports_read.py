"""The machine reports read back with plain parsers: which policy fails on which resource."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from io import StringIO
from urllib.parse import unquote
from xml.etree import ElementTree

import orjson

from policyeng.models import Evaluation, Outcome
from policyeng.report.csv import BYTE_ORDER_MARK, unguarded
from policyeng.report.escaping import visible

#: A policy and a resource; the resource is empty where a format names it in prose alone.
Line = tuple[str, str]

_GITHUB = re.compile(r"::(?:error|warning|notice) (?:.*,)?title=([^,:]*+)::(.*)", re.DOTALL)
_AZURE_DEVOPS = re.compile(r"##vso\[task\.logissue [^\]]*\bcode=([^;\]]*);\].*")


def lines_of(evaluation: Evaluation, name: str) -> list[Line]:
    """The lines of a report of that name: failures, or whatever needs a reader where it has no word for outcomes."""
    counting = [finding for finding in evaluation.findings if finding.exemption is None]
    failures = [finding for finding in counting if finding.outcome is Outcome.FAIL]
    if name == "json":
        return [(finding.policy, finding.resource) for finding in failures]
    if name == "sarif":  # a result for each denial
        return [(finding.policy, visible(finding.resource)) for finding in failures for _ in finding.denials]
    if name == "oscal":
        return [(_on_a_line(finding.policy), _on_a_line(finding.resource)) for finding in failures]
    if name in ("junit", "csv", "csv-bom"):
        return [(visible(finding.policy), visible(finding.resource)) for finding in failures]
    if name == "github":
        every = [finding for finding in evaluation.findings if finding.outcome is not Outcome.PASS]
        return [(visible(finding.policy), visible(finding.resource)) for finding in every]
    return [(visible(finding.policy), "") for finding in counting if finding.outcome is not Outcome.PASS]


def _on_a_line(text: str) -> str:
    return " ".join(visible(text).split()) or "-"


def _oscal(text: str) -> list[Line]:
    (result,) = orjson.loads(text)["assessment-results"]["results"]
    return [
        (observation["title"], subject["title"])
        for observation in result.get("observations", [])
        for subject in observation.get("subjects", [])
        if {"name": "outcome", "ns": "urn:policyeng:oscal", "value": "fail"} in subject["props"]
    ]


def _json(text: str) -> list[Line]:
    findings = orjson.loads(text)["findings"]
    return [
        (entry["policy"], entry["resource"])
        for entry in findings
        if entry["outcome"] == "fail" and entry["exemption"] is None
    ]


def _sarif(text: str) -> list[Line]:
    (run,) = orjson.loads(text)["runs"]
    return [(entry["ruleId"], visible(entry["properties"]["resource"])) for entry in run["results"]]


def _junit(text: str) -> list[Line]:
    root = ElementTree.fromstring(text)  # noqa: S314  # our own text
    return [
        (str(case.get("classname")), str(case.get("name")))
        for case in root.iter("testcase")
        if case.find("failure") is not None
    ]


def _github(text: str) -> list[Line]:
    found = [_GITHUB.fullmatch(line) for line in text.splitlines()]
    titled = [(unquote(line[1]), unquote(line[2])) for line in found if line and line[1] != "policyeng"]
    return [(title.partition(" (")[0], lines_of.rpartition("\nresource: ")[2]) for title, lines_of in titled]


def _azure_devops(text: str) -> list[Line]:
    found = map(_AZURE_DEVOPS.fullmatch, text.splitlines())
    return [(line[1].replace("%5D", "]").replace("%3B", ";").replace("%AZP25", "%"), "") for line in found if line]


def _csv(text: str) -> list[Line]:
    rows = csv.DictReader(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline=""))
    failing = [row for row in rows if row["outcome"] == "fail" and not row["exemption"]]
    return [(unguarded(row["policy"]), unguarded(row["resource"])) for row in failing]


READERS: Mapping[str, Callable[[str], list[Line]]] = {
    "json": _json,
    "sarif": _sarif,
    "junit": _junit,
    "github": _github,
    "azure-devops": _azure_devops,
    "csv": _csv,
    "csv-bom": _csv,
    "oscal": _oscal,
}
