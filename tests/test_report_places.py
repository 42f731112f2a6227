"""The places of findings, in every report."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.models import Denial, Evaluation, Finding, Location, Outcome, Place, Unknown
from policyeng.report import FORMATS
from policyeng.report.escaping import visible
from policyeng.report.locations import field_places, find_location, find_other_location, place, place_of, reasons
from policyeng.report.text import render as render_text
from tests.report_samples import CLUSTER, ISOLATION, PLACED, PUBLIC_ACCESS, SAMPLES, evaluation_of, evaluations, laws

VM_SIZE, TAGS, NETWORK = (reason.path for reason in (*PLACED.denials, *PLACED.unknowns))


def test_place() -> None:
    """A resource that came from no file has no place."""
    assert place(Location(file="a.json", line=3, column=5)) == "a.json:3:5"
    assert place(Location()) == ""
    assert place(Place(file="a\nb", line=1)) == "a\\nb:1:1"


def test_each_field_has_its_place_and_others_that_of_the_resource() -> None:
    """A field without a place of its own has the place of its resource."""
    assert place(place_of(PLACED, VM_SIZE)) == "infra/cluster.yml:9:7"
    assert place(place_of(PLACED, "/unheard")) == "infra/cluster.yml:3:1"
    assert find_other_location(PLACED, VM_SIZE) == "infra/cluster.yml:9:7"
    assert find_other_location(PLACED, NETWORK) == "infra/workspace.yml:21:3"
    assert find_other_location(PLACED, TAGS) == find_other_location(PLACED, "/unheard") == ""
    assert find_other_location(PLACED, TAGS, place_of(PLACED, VM_SIZE)) == "infra/cluster.yml:3:1"
    assert find_other_location(PUBLIC_ACCESS, "/properties/publicNetworkAccess") == ""


def test_the_first_place_is_that_of_the_first_reason_that_has_one() -> None:
    """Denials go before what could not be decided; without any it is the resource's."""
    tags_only = PLACED.model_copy(update={"denials": PLACED.denials[1:]})
    unknown = PLACED.model_copy(update={"denials": (), "outcome": Outcome.UNKNOWN})

    assert place(find_location(PLACED)) == "infra/cluster.yml:9:7"
    assert place(find_location(tags_only)) == "infra/cluster.yml:3:1"
    assert place(find_location(unknown)) == "infra/workspace.yml:21:3"
    assert place(find_location(PUBLIC_ACCESS)) == "samples/inference.json:12:1"


def test_all_places_of_a_finding_are_shown_once() -> None:
    """In the order of its reasons; that of the resource where no field has one."""
    twice = PLACED.model_copy(update={"denials": (*PLACED.denials, PLACED.denials[0])})

    assert field_places(twice) == ["infra/cluster.yml:9:7", "infra/cluster.yml:3:1", "infra/workspace.yml:21:3"]
    assert field_places(PUBLIC_ACCESS) == ["samples/inference.json:12:1"]


def test_reasons_name_the_places_that_are_not_next_to_them() -> None:
    """A reader of an annotation sees its own place already."""
    shape, tags, network = reasons(PLACED, find_location(PLACED), "left open")

    assert shape.endswith("Standard_F72s_v2")
    assert tags.endswith(", at infra/cluster.yml:3:1")
    assert network == (
        "left open: the workspace's network is not known: workspace:/properties/managedNetwork, "
        "at infra/workspace.yml:21:3"
    )


#: How the formats that are no JSON escape what a place may contain.
DECODED: dict[str, Callable[[str], str]] = {
    "text": str,
    "junit": unescape,
    "markdown": unescape,
    "github": lambda text: text.replace("%25", "%"),
    "azure-devops": lambda text: text.replace("%AZP25", "%"),
}


#: The compact form of text shortens places and reasons to a line.
VERBOSE = {"text": {"form": "verbose"}}


@pytest.mark.parametrize("name", DECODED)
@laws
@given(evaluation=evaluations())
def test_every_path_that_has_a_place_shows_it(name: str, evaluation: Evaluation) -> None:
    """The place of each field that a finding speaks of is in the report; an annotation is at the first one."""
    text = DECODED[name](FORMATS[name](evaluation, **VERBOSE.get(name, {})))
    for finding in evaluation.findings:
        annotated = finding.exemption is None or name == "github"  # elsewhere an exempt one is a plain line
        own = [find_location(finding)] if name in ("github", "azure-devops") and annotated else []
        for at in finding.location.fields.values():
            assert at in own or place(at) in text


@laws
@given(evaluations(), st.sampled_from(["resource", "policy"]))
def test_the_text_shows_whole_places(evaluation: Evaluation, group_by: str) -> None:
    """In one piece, under either grouping, so that they can be jumped to."""
    text = render_text(evaluation, width=40, group_by=group_by, form="verbose")
    for finding in evaluation.findings:
        for at in finding.location.fields.values():
            assert place(at) in text


PLACED_TEXT = """\
infra/cluster.yml:3:1

  critical  AML-ISO-101  Regulated work runs on an isolated VM size
    - the VM size shares its host with other customers
      path      /properties/properties/vmSize  infra/cluster.yml:9:7
      found     Standard_DS3_v2
      expected  Standard_E64is_v3, Standard_E64i_v3, Standard_M128ms, Standard_GS5, Standard_F72s_v2
    - the cluster is not tagged with its owner
      path      /tags
      found     none
      expected  owner *
    - unknown: the workspace's network is not known
      path      workspace:/properties/managedNetwork  infra/workspace.yml:21:3
"""


def test_a_place_is_next_to_its_path_where_it_is_not_the_resource_s() -> None:
    """No noise for places of the resource itself; below the path where the width is too small."""
    assert PLACED_TEXT in FORMATS["text"](SAMPLES["placed"], form="verbose")
    narrow = render_text(SAMPLES["placed"], width=60, form="verbose")
    assert "      path      /properties/properties/vmSize\n                infra/cluster.yml:9:7\n" in narrow


def test_under_a_policy_the_places_are_next_to_the_resource() -> None:
    """Reasons that are the same for several resources are shown once, wherever the fields are."""
    other = PLACED.model_copy(
        update={
            "resource": f"{CLUSTER}-2",
            "location": Location(file="infra/b.yml", fields={VM_SIZE: Place(file="infra/b.yml", line=4, column=2)}),
        }
    )
    text = render_text(evaluation_of([PLACED, other]), group_by="policy", form="verbose")

    assert (
        "  ws/train-gpu  infra/cluster.yml:9:7\n    infra/cluster.yml:3:1\n    infra/workspace.yml:21:3\n"
        "  ws/train-gpu-2  infra/b.yml:4:2\n    - the VM size shares"
    ) in text
    assert text.count("the VM size shares its host") == 1


def test_an_unknown_finding_shows_its_whole_reason_with_the_remedy() -> None:
    """Formats state in the reason how to fix what they could not read."""
    reason = "`[parameters('sku')]` is not resolved at main.json:14; give it with `--parameters sku=VALUE`"
    finding = Finding.model_validate(
        ISOLATION.model_dump() | {"outcome": "unknown", "denials": (), "unknowns": [Unknown(msg=reason, path="/sku")]}
    )
    for name in ("text", "github", "azure-devops", "junit", "json"):
        shown = " ".join(unescape(FORMATS[name](evaluation_of([finding]), **VERBOSE.get(name, {}))).split())
        assert reason in shown, name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("github", "::error file=infra/cluster.yml,line=9,col=7,title=AML-ISO-101 "),
        ("azure-devops", "type=error;sourcepath=infra/cluster.yml;linenumber=9;columnnumber=7;code=AML-ISO-101;"),
        ("github", "expected owner *, at infra/cluster.yml:3:1%0Aunknown: "),
        ("azure-devops", "expected owner *, at infra/cluster.yml:3:1; unknown: "),
        ("junit", 'file="infra/cluster.yml" line="9"'),
        ("junit", "\nlocation: infra/cluster.yml:3:1</failure>"),
        ("markdown", "<code>/properties/properties/vmSize</code> at <code>infra/cluster.yml&#58;9&#58;7</code><br>"),
        ("markdown", "<code>infra/cluster.yml&#58;3&#58;1</code></details>"),
    ],
)
def test_each_format_points_to_the_field(name: str, line: str) -> None:
    """The place of the first failing field, and in words those of the others."""
    assert line in FORMATS[name](SAMPLES["placed"])


def test_an_unknown_place_is_not_shown() -> None:
    """A snapshot from no file has neither line nor column."""
    finding = PUBLIC_ACCESS.model_copy(update={"location": Location(), "denials": (Denial(msg="m", path="/p"),)})
    for name in ("text", "github", "azure-devops", "junit", "markdown"):
        text = FORMATS[name](evaluation_of([finding]))
        assert ":1:1" not in text
        assert "line=" not in text
        assert visible("&#58;1") not in text
