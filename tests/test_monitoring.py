"""The dashboard and the alert rules: well-formed, and about metrics and labels that the server has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from policyeng.models import Exemption, JsonObject
from policyeng.server.decision_log import DecisionLog, Fate, Segments
from tests.bundles import workspace
from tests.servers import get_from, send_to, service_of, setup_of, state_of
from tests.test_server_metrics import measured

MONITORING = Path(__file__).resolve().parents[1] / "deploy" / "monitoring"
RULES = yaml.safe_load((MONITORING / "prometheus-rules.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
PANELS = DASHBOARD["panels"]
#: What the names of the samples of a family add to its own.
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
_NAME = re.compile(r"\b(?:policyeng|process|python)_[a-z_]+")
_SELECTED = re.compile(r"(\w+)\{([^{}]*)\}")


def expressions() -> Iterator[str]:
    """The expressions of both files."""
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The samples that a server with state, exemptions and a decision log has, with their labels."""
    folder = tmp_path_factory.mktemp("measured")
    now = datetime.now(UTC)
    texts = {name: name for name in ("id", "policy", "scope", "reason", "owner", "approved_by")}
    exemption = Exemption(**texts, category="waiver", created_at=now, expires_at=now + timedelta(days=30))
    service = service_of(replace(setup_of(folder), exemptions=(exemption,)), state_of(since=now - timedelta(seconds=9)))
    service.log = DecisionLog(Segments(folder / "log", longest=1 << 20, keep=2), {})
    measured(service)
    for content in (workspace("there", x=2), b"{"):
        for path in ("/v1/admit", "/v1/check"):
            send_to(service, path, content)
    (response,) = get_from(service, "/metrics")
    families = list(text_string_to_metric_families(response.text))
    return {
        f"{family.name}{suffix}": {label for sample in family.samples for label in sample.labels}
        for family in families
        for suffix in _SUFFIXES.get(family.type, ())
    }


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_metric_exists(expression: str, metrics: dict[str, set[str]]) -> None:
    """With the labels that are selected and grouped by."""
    named = _NAME.findall(expression)

    assert named
    assert set(named) <= metrics.keys()
    labels = {label for name in named for label in metrics[name]} | {"job", "instance"}
    selected = {
        each.partition("=")[0].rstrip("!") for _, given in _SELECTED.findall(expression) for each in given.split(", ")
    }
    grouped = {each for given in re.findall(r"by \(([^)]*)\)", expression) for each in given.split(", ")}
    assert selected | grouped <= labels
    assert expression.count("(") == expression.count(")")


def test_every_metric_of_ours_is_on_the_dashboard(metrics: dict[str, set[str]]) -> None:
    """But for those whose content another one has."""
    shown = {name for panel in PANELS for target in panel["targets"] for name in _NAME.findall(target["expr"])}
    families = {name for name in metrics if name.startswith("policyeng_")}

    assert families - shown == {
        "policyeng_admission_duration_seconds_count",
        "policyeng_admission_duration_seconds_sum",
        "policyeng_allowed_changes",
        "policyeng_allowed_changes_forgotten_total",
        "policyeng_bundle_load_failures_total",
        "policyeng_exemptions",
        "policyeng_last_load_timestamp_seconds",
        "policyeng_policyset_info",
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_states_what_to_do(rule: JsonObject) -> None:
    """And shows only labels that its expression leaves."""
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    text = " ".join(rule["annotations"].values())
    assert rule["annotations"].keys() == {"summary", "description"}
    grouped = re.search(r"by \(([^)]*)\)", rule["expr"])
    for label in re.findall(r"\$labels\.(\w+)", text):
        assert grouped is None or label in grouped[1].split(", ")
    if fates := re.findall(r'fate!?="(\w+)"', rule["expr"]):
        assert set(fates) <= set(Fate)


def test_the_panels_do_not_overlap() -> None:
    """And each has its own number, a title and a data source that one chooses."""
    places = [
        (x, y)
        for panel in PANELS
        for grid in [panel["gridPos"]]
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]

    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "job"]
