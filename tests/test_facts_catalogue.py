"""The facts in `policies/facts` are whole, sourced and reproducible, and `Facts` reads them as values."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from policyeng.errors import BundleError
from policyeng.facts import Facts

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "policies" / "facts"
REAL = ROOT.parent / "shared" / "real"

GENERAL = ("D", "DDSv4", "Dv2", "Dv3", "DSv2", "DSv3", "EAv4", "Ev3", "FSv2", "H", "NC", "NC Promo", "NV")
RESTRICTED = ("HB", "HBv2", "HCS", "M", "NCsv2", "NCsv3", "NDs", "NDv2", "NVv3")
DOCUMENTS_SERIES = (*GENERAL, *RESTRICTED)

#: Size and series, each with what it must not be taken for.
DECISIONS = [
    ("Standard_D1", "D"),
    ("Standard_D14", "D"),
    ("Standard_D11", "D"),
    ("Standard_DS1", "DS"),
    ("Standard_DS14", "DS"),
    ("STANDARD_D1_V2", "Dv2"),
    ("Standard_D15_v2", "Dv2"),
    ("Standard_D2_v2_Promo", "Dv2 Promo"),
    ("Standard_DS3_v2", "DSv2"),
    ("Standard_DS15_v2", "DSv2"),
    ("Standard_DS11-1_v2", "DSv2"),
    ("Standard_DS3_v2_Promo", "DSv2 Promo"),
    ("Standard_D4_v3", "Dv3"),
    ("Standard_D4s_v3", "DSv3"),
    ("Standard_D4_v4", "Dv4"),
    ("Standard_D4s_v4", "DSv4"),
    ("Standard_D4d_v4", "DDv4"),
    ("Standard_D4ds_v4", "DDSv4"),
    ("Standard_D4ds_v5", "DDSv5"),
    ("Standard_D4a_v4", "DAv4"),
    ("Standard_D4as_v4", "DASv4"),
    ("Standard_DC2s", "DCS"),
    ("Standard_DC2s_v2", "DCSv2"),
    ("Standard_DC1ds_v3", "DCDSv3"),
    ("Standard_E4_v3", "Ev3"),
    ("Standard_E64i_v3", "Ev3"),
    ("Standard_E4s_v3", "ESv3"),
    ("Standard_E4-2s_v3", "ESv3"),
    ("Standard_E64is_v3", "ESv3"),
    ("Standard_E4_v4", "Ev4"),
    ("Standard_E4a_v4", "EAv4"),
    ("Standard_E4as_v4", "EASv4"),
    ("Standard_E96ias_v4", "EASv4"),
    ("Standard_E4as_v6", "EASv6"),
    ("Standard_E104i_v5", "Ev5"),
    ("Standard_F4", "F"),
    ("Standard_F4s", "FS"),
    ("Standard_F4s_v2", "FSv2"),
    ("Standard_F72s_v2", "FSv2"),
    ("Standard_FX4mds", "FX"),
    ("Standard_H16mr", "H"),
    ("Standard_H8", "H"),
    ("Standard_H16mr_Promo", "H Promo"),
    ("Standard_HB60rs", "HB"),
    ("Standard_HB60-15rs", "HB"),
    ("Standard_HB120rs_v2", "HBv2"),
    ("Standard_HB120-16rs_v2", "HBv2"),
    ("Standard_HB120rs_v3", "HBv3"),
    ("Standard_HC44rs", "HCS"),
    ("Standard_HX176rs", "HX"),
    ("Standard_M64", "M"),
    ("Standard_M128ms", "M"),
    ("Standard_M8-2ms", "M"),
    ("Standard_M208s_v2", "MSv2"),
    ("Standard_M64s_v2", "MSv2 MM"),
    ("Standard_M192ids_v2", "MDSv2 MM"),
    ("Standard_M832is_16_v3", "MSv3 HM"),
    ("Standard_NC6", "NC"),
    ("Standard_NC24r", "NC"),
    ("Standard_NC6_Promo", "NC Promo"),
    ("Standard_NC24r_Promo", "NC Promo"),
    ("Standard_NC6s_v2", "NCsv2"),
    ("Standard_NC24rs_v2", "NCsv2"),
    ("Standard_NC6s_v3", "NCsv3"),
    ("Standard_NC24s_v3", "NCsv3"),
    ("Standard_NC24rs_v3", "NCsv3"),
    ("Standard_NC4as_T4_v3", "NCasT4_v3"),
    ("Standard_NC24ads_A100_v4", "NCadsA100_v4"),
    ("Standard_ND6s", "NDs"),
    ("Standard_ND24rs", "NDs"),
    ("Standard_ND40rs_v2", "NDv2"),
    ("Standard_ND96asr_v4", "NDasrA100_v4"),
    ("Standard_NV6", "NV"),
    ("Standard_NV6_Promo", "NV Promo"),
    ("Standard_NV6s_v2", "NVv2"),
    ("Standard_NV12s_v3", "NVv3"),
    ("Standard_NV4as_v4", "NVv4"),
    ("Standard_NP10s", "NP"),
    ("Standard_A4_v2", "Av2"),
    ("Standard_A4", "Av1"),
    ("Basic_A4", "Av1"),
    ("Standard_B2ms", "B"),
    ("Standard_B2ts_v2", "BSv2"),
]


#: What the names of a series' sizes look like, distinguished from every other name of the catalogue.
SHAPES = {
    "D": r"D\d+",
    "DDSv4": r"D\d+ds_v4",
    "Dv2": r"D\d+_v2",
    "Dv3": r"D\d+_v3",
    "DSv2": r"DS\d+(-\d+)?_v2",
    "DSv3": r"D\d+s_v3",
    "EAv4": r"E\d+a_v4",
    "Ev3": r"E\d+i?_v3",
    "FSv2": r"F\d+s_v2",
    "H": r"H\d+m?r?",
    "HB": r"HB\d+(-\d+)?rs",
    "HBv2": r"HB\d+(-\d+)?rs_v2",
    "HCS": r"HC\d+(-\d+)?rs",
    "M": r"M\d+(-\d+)?[lmt]?s?",
    "NC": r"NC\d+r?",
    "NC Promo": r"NC\d+r?_Promo",
    "NCsv2": r"NC\d+r?s_v2",
    "NCsv3": r"NC\d+r?s_v3",
    "NDs": r"ND\d+r?s",
    "NDv2": r"ND\d+rs_v2",
    "NV": r"NV\d+",
    "NVv3": r"NV\d+s_v3",
}


@cache
def document() -> dict[str, Any]:
    """The facts of the repository, as `data.facts` is."""
    return {path.parent.name: orjson.loads(path.read_bytes()) for path in FOLDER.glob("*/data.json")}


@pytest.fixture
def facts() -> Facts:
    """The catalogue of the repository."""
    return Facts.from_document(document())


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of one table, whether it is an object or a list."""
    table = document()[name]
    return list(table.values()) if isinstance(table, dict) else table


@pytest.mark.parametrize("name", sorted(set(document()) - {"sources"}))
def test_every_row_cites_a_source_that_exists(name: str) -> None:
    """No fact is without the place where it was read."""
    assert rows_of(name)
    assert {row["source"] for row in rows_of(name)} <= document()["sources"].keys()


def test_every_source_names_its_place_and_revision() -> None:
    """A reader can find each source again; all but the founding documents and the rules of others bear a date."""
    for key, row in document()["sources"].items():
        assert row["title"]
        assert row["path"]
        assert row["revision"]
        assert row["date"] or key.startswith("doc-") or re.fullmatch(r"\d{3}|[A-Z]+-\d\d", key)


def test_there_are_at_least_1370_whole_sizes() -> None:
    """Every size has a series, a family, vCPUs and memory; keys are the lower-case names."""
    sizes = document()["vm_sizes"]
    assert len(sizes) >= 1370
    for key, row in sizes.items():
        assert key == row["name"].lower()
        assert row["series"]
        assert row["family"]
        assert row["vcpus"] >= 1
        assert row["memory_gib"] > 0
        assert row["gpus"] >= 0
        assert row["fpgas"] >= 0


def test_the_sizes_stay_small_enough_to_parse_at_every_start() -> None:
    """The table of sizes is one row a line and under 350 kB."""
    text = (FOLDER / "vm_sizes" / "data.json").read_text(encoding="utf-8")
    assert len(text) < 350_000
    assert text.count("\n") == len(document()["vm_sizes"]) + 2


@pytest.mark.parametrize("series", DOCUMENTS_SERIES)
def test_each_series_of_the_documents_has_sizes(facts: Facts, series: str) -> None:
    """The documents' spelling is the table's, and at least one size bears it."""
    row = facts.series(series)
    assert row is not None
    assert row.name == series
    assert row.supported_by == ("cluster", "instance")
    assert any(size["series"] == series for size in rows_of("vm_sizes"))


def test_the_table_of_series_is_the_documents_and_no_more() -> None:
    """22 series, nine of which need approval."""
    table = document()["vm_series"]
    assert sorted(table) == sorted(DOCUMENTS_SERIES)
    restricted = {name for name, row in table.items() if row["restriction"] == "approval"}
    assert restricted == set(RESTRICTED)
    assert {row["category"] for row in table.values()} == {
        "general purpose",
        "memory optimized",
        "compute optimized",
        "high performance",
        "GPU",
    }


@pytest.mark.parametrize(("size", "series"), DECISIONS)
def test_a_size_is_of_its_series_and_not_of_a_look_alike(facts: Facts, size: str, series: str) -> None:
    """The series of a size is the documents' where they name it, and another name where they do not."""
    known = facts.size(size)
    assert known is not None
    assert known.series == series


@pytest.mark.parametrize(("series", "shape"), SHAPES.items())
def test_a_series_of_the_documents_has_all_its_sizes_and_no_other(series: str, shape: str) -> None:
    """Over the whole catalogue, having the shape of a series and being of it are the same; the table is not guessed."""
    names = {row["name"] for row in rows_of("vm_sizes")}
    shaped = {name for name in names if re.fullmatch(f"Standard_{shape}", name)}
    assert shaped
    assert {row["name"] for row in rows_of("vm_sizes") if row["series"] == series} == shaped


@pytest.mark.parametrize("path", sorted((ROOT / "tools" / "facts").glob("*.csv")), ids=lambda path: path.stem)
def test_the_tables_behind_the_facts_cite_sources_that_exist(path: Path) -> None:
    """What was entered by hand states where it was read, row by row."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    if "source" in rows[0]:
        assert {row["source"] for row in rows if row.get("kind") != "note"} <= document()["sources"].keys()


def test_series_names_differ_by_more_than_case() -> None:
    """Series compare without case, so no two may differ by case alone."""
    names = {row["series"] for row in rows_of("vm_sizes")}
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("size", "gpus", "fpgas"),
    [
        ("Standard_NP10s", 0, 1),
        ("Standard_NP40s", 0, 4),
        ("Standard_NC6", 1, 0),
        ("Standard_NC24s_v3", 4, 0),
        ("Standard_ND40rs_v2", 8, 0),
        ("Standard_ND96is_MI300X_v5", 8, 0),
        ("Standard_NG8ads_V620_v1", 0.25, 0),
        ("Standard_NV4ads_V710_v5", 0.1667, 0),
        ("Standard_DS3_v2", 0, 0),
    ],
)
def test_accelerators_are_counted_as_what_they_are(facts: Facts, size: str, gpus: float, fpgas: int) -> None:
    """FPGAs are not GPUs, and a share of a GPU is more than none."""
    known = facts.size(size)
    assert known is not None
    assert (known.gpus, known.fpgas) == (gpus, fpgas)


@pytest.mark.parametrize(
    ("size", "memory"),
    [
        ("Standard_DS3_v2", 14),
        ("Standard_DS1_v2", 3.5),
        ("Standard_D1", 3.5),
        ("Standard_B1ls", 0.5),
        ("Standard_M8-2ms", 218.75),
        ("Standard_M128ms", 3892),
        ("Standard_NC6", 56),
    ],
)
def test_memory_keeps_its_fractions(facts: Facts, size: str, memory: float) -> None:
    """GiB as the vendor states them, not cut off to whole ones."""
    known = facts.size(size)
    assert known is not None
    assert known.memory_gib == memory


def test_every_gpu_series_has_an_accelerator_in_each_size() -> None:
    """No size of an N series passes for a machine without accelerators."""
    bare = [row["name"] for row in rows_of("vm_sizes") if row["name"].startswith("Standard_N")]
    assert [
        name for name in bare if not sum(document()["vm_sizes"][name.lower()][key] for key in ("gpus", "fpgas"))
    ] == []


@pytest.mark.parametrize("name", ["isolated_sizes", "isolation_ended", "retired_sizes"])
def test_sizes_named_elsewhere_are_in_the_catalogue(name: str) -> None:
    """Isolation and retirement speak of sizes that the catalogue knows."""
    assert document()[name].keys() <= document()["vm_sizes"].keys()


def test_the_isolated_sizes_are_the_documents_four_and_the_vendors_36(facts: Facts) -> None:
    """What has lost its isolation is not isolated, and an `i` in a name decides nothing."""
    assert len(document()["isolated_sizes"]) == 40
    for size in (
        "Standard_M128ms",
        "standard_f72S_v2",
        "Standard_NC24s_v3",
        "Standard_NC24rs_v3",
        "Standard_HB120rs_v3",
    ):
        assert facts.is_isolated(size)
    for size in ("Standard_D15_v2", "Standard_E64i_v3", "Standard_G5", "Standard_M896ixds_32_v3", "Standard_NC6s_v3"):
        assert not facts.is_isolated(size)
    assert not document()["isolation_ended"].keys() & document()["isolated_sizes"].keys()


@pytest.mark.parametrize(
    ("size", "day"),
    [
        ("Standard_NC24s_v3", "2025-09-30"),
        ("Standard_NC24rs_v3", "2025-09-30"),
        ("Standard_NC6", "2023-08-31"),
        ("Standard_NC6_Promo", "2023-09-06"),
        ("Standard_NV6_Promo", "2023-08-31"),
        ("Standard_H16r", "2022-08-31"),
        ("Standard_HB60rs", "2024-08-31"),
        ("Standard_HC44-16rs", "2027-05-31"),
        ("Standard_F72s_v2", "2028-11-15"),
        ("Standard_E64i_v3", "2022-02-28"),
        ("Standard_E64is_v3", "2022-02-28"),
        ("Standard_M192idms_v2", "2027-03-31"),
        ("Standard_DS3_v2", "2028-05-01"),
        ("Standard_A4_v2", "2028-11-15"),
        ("Basic_A1", "2024-08-31"),
        ("Standard_A8", "2021-03-01"),
    ],
)
def test_a_size_retires_on_the_earliest_day_a_source_gives(facts: Facts, size: str, day: str) -> None:
    """A series' retirement applies to each of its sizes, and of two dates the earlier counts."""
    retirement = facts.retirement(size)
    assert retirement is not None
    assert retirement.date == date.fromisoformat(day)


@pytest.mark.parametrize("size", ["Standard_ND40rs_v2", "Standard_M128ms", "Standard_D4ds_v4", "Standard_nope"])
def test_a_size_without_a_stated_retirement_has_none(facts: Facts, size: str) -> None:
    """No date is guessed, not even where others do (NDv2)."""
    assert facts.retirement(size) is None


def test_the_index_of_retired_sizes_is_the_earliest_of_the_retirements() -> None:
    """The index has nothing that the list does not have."""
    earliest: dict[str, str] = {}
    for row in rows_of("retirements"):
        assert row["status"] in {"retired", "announced"}
        for size in row["sizes"]:
            earliest[size] = min(row["date"], earliest.get(size, row["date"]))
            assert row["series"] in {None, document()["vm_sizes"][size]["series"]}
    assert {size: row["date"] for size, row in document()["retired_sizes"].items()} == earliest


def test_a_regional_extension_is_a_note_and_moves_no_date() -> None:
    """NCv3 lives longer in some clouds; the date stays."""
    noted = [row for row in rows_of("retirements") if row["series"] == "NCsv3"]
    assert [row["date"] for row in noted] == ["2025-09-30"]
    assert "US Gov" in noted[0]["note"]


MIDNIGHT = datetime(2027, 5, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("as_of", "has_come"),
    [
        (MIDNIGHT, True),
        (MIDNIGHT - timedelta(microseconds=1), False),
        (MIDNIGHT + timedelta(days=4000), True),
        (datetime(2027, 5, 31, 2, tzinfo=timezone(timedelta(hours=2))), True),
        (datetime(2027, 5, 31, 1, 59, 59, tzinfo=timezone(timedelta(hours=2))), False),
        (datetime(2027, 5, 30, 19, tzinfo=timezone(timedelta(hours=-5))), True),
    ],
)
def test_a_retirement_begins_at_midnight_utc(facts: Facts, as_of: datetime, has_come: bool) -> None:
    """Whatever the clock; all sizes of a series retire on one day."""
    for size in ("Standard_HC44rs", "standard_hc44-16rs", "STANDARD_HC44-32RS"):
        retirement = facts.retirement(size)
        assert retirement is not None
        assert retirement.has_come(as_of) is has_come
        assert retirement.comes_within(0, as_of) is has_come


@pytest.mark.parametrize(
    ("days", "before", "within"),
    [
        (180, timedelta(days=180), True),
        (180, timedelta(days=180, microseconds=1), False),
        (180, timedelta(days=179, hours=23), True),
        (0, timedelta(0), True),
        (0, timedelta(microseconds=1), False),
        (1, timedelta(days=1), True),
        (0.5, timedelta(hours=12), True),
        (10**12, timedelta(days=9000), True),
        (180, timedelta(days=-9000), True),
    ],
)
def test_within_so_many_days_takes_in_the_last_one(facts: Facts, days: float, before: timedelta, within: bool) -> None:
    """To the microsecond, however many days; what is retired is within any number of them."""
    retirement = facts.retirement("Standard_HC44rs")
    assert retirement is not None
    assert retirement.comes_within(days, MIDNIGHT - before) is within


@pytest.mark.parametrize(
    "spelling",
    [
        "e503ece1-11d0-4e8e-8e2c-7a6c3bf38815",
        "E503ECE1-11D0-4E8E-8E2C-7A6C3BF38815",
        "AzureML compute operator",
        "/providers/Microsoft.Authorization/roleDefinitions/e503ece1-11d0-4e8e-8e2c-7a6c3bf38815",
        "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/E503ECE1-11d0-4e8e-8e2c-7a6c3bf38815",
    ],
)
def test_a_role_is_found_by_each_of_its_spellings(facts: Facts, spelling: str) -> None:
    """GUID, name and id with or without a subscription mean the same role."""
    role = facts.role(spelling)
    assert role is not None
    assert role.name == "AzureML Compute Operator"


@pytest.mark.parametrize("name", ["Owner", "Contributor", "Reader", "User Access Administrator", "Foundry Owner"])
def test_the_general_roles_that_reach_machine_learning_are_known(facts: Facts, name: str) -> None:
    """An assignment above the workspace mostly names one of these."""
    role = facts.role(name)
    assert role is not None
    assert role.permissions


def test_other_built_in_roles_are_known_to_act_elsewhere(facts: Facts) -> None:
    """A role that reaches no Machine Learning action is distinguished from an unknown one."""
    elsewhere = {row["name"] for row in document()["roles_elsewhere"].values()}
    assert "Key Vault Administrator" in elsewhere
    role = facts.role("Key Vault Administrator")
    assert role is not None
    assert role.permissions == ()
    assert facts.role(role.guid) == role
    assert facts.role("nobody knows it") is None
    assert not document()["roles"].keys() & document()["roles_elsewhere"].keys()


def test_unknown_names_give_nothing() -> None:
    """An empty catalogue is legal and knows nothing."""
    empty = Facts.from_document({})
    assert empty.size("Standard_NC6") is None
    assert empty.series("NC") is None
    assert empty.role("Owner") is None
    assert not empty.is_isolated("Standard_M128ms")


@pytest.mark.parametrize(
    ("broken", "look_up"),
    [
        ({"vm_sizes": {"a": {"name": "A"}}}, lambda facts: facts.size("A")),
        ({"retired_sizes": {"a": {"date": "soon", "source": "x"}}}, lambda facts: facts.retirement("A")),
        ({"roles": {"a": {"name": "A", "powers": []}}}, lambda facts: facts.role("A")),
    ],
)
def test_a_malformed_row_is_an_error_when_it_is_read(broken: dict[str, Any], look_up: Any) -> None:
    """A row that a foreign bundle got wrong is never taken for an unknown name."""
    facts = Facts.from_document(broken)
    with pytest.raises(BundleError, match="not well formed"):
        look_up(facts)


def test_a_table_that_is_no_object_is_refused() -> None:
    """The shape of the tables is a promise."""
    with pytest.raises(BundleError, match="facts/vm_sizes: not a JSON object"):
        Facts.from_document({"vm_sizes": []})


def test_the_facts_are_reproducible_from_their_inputs() -> None:
    """The generator gives these very bytes from the vendor's lists and the tables in `tools/facts`."""
    inputs = {
        "--sizes": REAL / "vm_sku" / "vm_sizes_from_autoscaler.json",
        "--isolated": REAL / "vm_sku" / "azure_isolated_sizes.json",
        "--retirements": REAL / "vm_sku" / "azure_retirements.json",
        "--roles": REAL / "rbac" / "azureml_builtin_roles_extracted.json",
    }
    if missing := [str(path) for path in inputs.values() if not path.exists()]:
        pytest.skip(f"the vendor's lists are not here: {', '.join(missing)}")
    command = [sys.executable, "tools/build_facts.py", "--verify"]
    arguments = [str(part) for pair in inputs.items() for part in pair]
    done = subprocess.run(command + arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
