"""Properties of every report format."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given

from policyeng.models import Evaluation
from policyeng.report import FORMATS
from tests.report_samples import SAMPLES, evaluations, laws


def test_formats_are_named_as_documented() -> None:
    """The names are those that `--format` takes."""
    known = ["text", "json", "sarif", "junit", "markdown", "github", "azure-devops", "html", "csv", "csv-bom", "oscal"]
    assert list(FORMATS) == known


def test_importing_the_package_imports_no_renderer_and_no_rich(root: Path) -> None:
    """Cold start counts: a format is imported when it first renders."""
    program = (
        "import sys, policyeng.report\n"
        "assert 'xml.etree' not in sys.modules\n"
        "print([m for m in sys.modules if m.startswith(('rich', 'policyeng.report.'))])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.strip() == "[]"


def test_plain_text_needs_no_rich(root: Path) -> None:
    """Only colour costs the import of rich."""
    program = (
        "import sys\n"
        "from tests.report_samples import SAMPLES\n"
        "from policyeng.report.text import render\n"
        "before = set(sys.modules); render(SAMPLES['every outcome'])\n"
        "print([m for m in set(sys.modules) - before if m.startswith('rich')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("name", FORMATS)
@laws
@given(evaluation=evaluations())
def test_a_report_is_deterministic_and_shows_every_character(name: str, evaluation: Evaluation) -> None:
    """Any evaluation renders; the same one gives the same text, of printable characters and newlines, ending in one."""
    text = FORMATS[name](evaluation)
    assert text == FORMATS[name](deepcopy(evaluation))
    if name.startswith("csv"):  # RFC 4180 has CRLF
        assert text.startswith("\ufeff") == (name == "csv-bom")
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    assert text.replace("\n", "").isprintable()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"github", "azure-devops"}))
@laws
@given(evaluation=evaluations())
def test_no_report_speaks_to_a_build_agent_unasked(name: str, evaluation: Evaluation) -> None:
    """A log that shows the report obeys nothing in it: no `##vso[`, no `##[`, no line that begins with `::`."""
    _assert_obeys_nothing(FORMATS[name](evaluation))


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"github", "azure-devops"}))
def test_hostile_names_speak_to_no_build_agent(name: str) -> None:
    """The same for names written to attack."""
    _assert_obeys_nothing(FORMATS[name](SAMPLES["hostile"]))


def _assert_obeys_nothing(text: str) -> None:
    assert "##vso[" not in text
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.strip().startswith("::") and line.strip()[2:3].isalpha()]


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"json"}))
@pytest.mark.parametrize("sample", ["every outcome", "failures", "only exempt"])
def test_every_finding_that_is_not_a_pass_is_named(name: str, sample: str) -> None:
    """Nothing is truncated: each failing, unknown and error finding's policy is in the report, exempt ones too."""
    text = FORMATS[name](SAMPLES[sample])
    for finding in SAMPLES[sample].findings:
        if finding.outcome != "pass":
            assert finding.policy in text
