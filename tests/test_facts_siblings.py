"""`policyeng.facts.siblings`: the next larger and the next smaller size of a series, over the whole catalogue."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from policyeng.facts import Facts
from policyeng.facts.siblings import can_replace, larger_siblings, smaller_siblings

FOLDER = Path(__file__).resolve().parents[1] / "policies" / "facts"
FACTS = Facts.from_document({path.parent.name: orjson.loads(path.read_bytes()) for path in FOLDER.glob("*/data.json")})
NAMES = [row["name"] for row in FACTS.document["vm_sizes"].values()]
#: Before the first retirement of the catalogue, so that every size is still offered.
EARLY = datetime(2020, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)

#: For every series of the documents, the sizes that follow from its smallest by one step up at a time.
CHAINS = {
    "D": "D1 D2 D11 D12 D13 D14",
    "DDSv4": "D2ds_v4 D4ds_v4 D8ds_v4 D16ds_v4 D32ds_v4 D48ds_v4 D64ds_v4",
    "Dv2": "D1_v2 D2_v2 D11_v2 D12_v2 D13_v2 D14_v2 D15_v2",
    "Dv3": "D2_v3 D4_v3 D8_v3 D16_v3 D32_v3 D48_v3 D64_v3",
    "DSv2": "DS1_v2 DS2_v2 DS11_v2 DS12_v2 DS13_v2 DS14_v2 DS15_v2",
    "DSv3": "D2s_v3 D4s_v3 D8s_v3 D16s_v3 D32s_v3 D48s_v3 D64s_v3",
    "EAv4": "E2a_v4 E4a_v4 E8a_v4 E16a_v4 E20a_v4 E32a_v4 E48a_v4 E64a_v4 E96a_v4",
    "Ev3": "E2_v3 E4_v3 E8_v3 E16_v3 E20_v3 E32_v3 E48_v3 E64_v3",
    "FSv2": "F2s_v2 F4s_v2 F8s_v2 F16s_v2 F32s_v2 F48s_v2 F64s_v2 F72s_v2",
    "H": "H8 H8m H16m",
    "HB": "HB60rs",
    "HBv2": "HB120rs_v2",
    "HCS": "HC44rs",
    "M": "M8ms M16ms M32ms M64s M64ms M128s M128ms",
    "NC": "NC6 NC12 NC24",
    "NC Promo": "NC6_Promo NC12_Promo NC24_Promo",
    "NCsv2": "NC6s_v2 NC12s_v2 NC24s_v2",
    "NCsv3": "NC6s_v3 NC12s_v3 NC24s_v3",
    "NDs": "ND6s ND12s ND24s",
    "NDv2": "ND40rs_v2",
    "NV": "NV6 NV12 NV24",
    "NVv3": "NV12s_v3 NV24s_v3 NV48s_v3",
    "NCasT4_v3": "NC4as_T4_v3 NC8as_T4_v3 NC16as_T4_v3 NC64as_T4_v3",
    "ESv6": "E2s_v6 E4s_v6 E8s_v6 E16s_v6 E20s_v6 E32s_v6 E48s_v6 E64s_v6 E96s_v6 E128s_v6 E192is_v6",
}


def _name(short: str | None) -> str | None:
    return short and (short if short.startswith("Basic_") else f"Standard_{short}")


def _larger(name: str, as_of: datetime = EARLY) -> str | None:
    return next((size.name for size in larger_siblings(FACTS, name, as_of)), None)


def _smaller(name: str, as_of: datetime = EARLY) -> str | None:
    return next((size.name for size in smaller_siblings(FACTS, name, as_of)), None)


def _plain(name: str) -> bool:
    return not re.search(r"\d-\d", name)


@pytest.mark.parametrize("series", CHAINS)
def test_a_series_is_climbed_step_by_step(series: str) -> None:
    """The chain begins at a size with nothing below it and ends at one with nothing above it."""
    first, *others = (f"Standard_{short}" for short in CHAINS[series].split())
    climbed = []
    above = _larger(first)
    while above:
        climbed.append(above)
        above = _larger(above)

    assert climbed == others
    assert _smaller(first) is None
    known = FACTS.size(first)
    assert known is not None
    assert known.series == series


@pytest.mark.parametrize(
    ("size", "smaller", "larger"),
    [
        ("M32ls", "M32ts", "M64ls"),  # not the 8 vCPUs of M8ms, whose memory is nearer
        ("M64ls", "M32ls", "M64s"),
        ("M64s", "M64ls", "M64ms"),  # both take premium disks; M64m does not
        ("M64", "M64ls", "M64m"),
        ("D3_v2", "D2_v2", "D12_v2"),
        ("D4_v2", "D3_v2", "D13_v2"),
        ("D12_v2", "D3_v2", "D13_v2"),
        ("H16r", "H8", "H16mr"),
        ("NC24r", "NC12", None),
        ("NC24rs_v3", "NC12s_v3", None),
        ("NV36adms_A10_v5", "NV36ads_A10_v5", None),
        ("NG8ads_V620_v1", None, "NG16ads_V620_v1"),
        ("NP20s", "NP10s", "NP40s"),
        ("D2_v2_Promo", None, "D11_v2_Promo"),
        ("Basic_A1", "Basic_A0", "Basic_A2"),
        ("A1", "A0", "A2"),
        ("E64i_v3", "E48_v3", None),
        ("E80is_v4", "E48s_v4", None),
        ("M192is_v2", "M64ms_v2", "M192ims_v2"),
        ("M128ms_v2", "M128s_v2", "M192ims_v2"),
    ],
)
def test_neighbours_of_the_odd_ones(size: str, smaller: str | None, larger: str | None) -> None:
    """Where memory, vCPUs and GPUs do not grow together, the nearest in all of them is next."""
    name = str(_name(size))
    assert (_smaller(name), _larger(name)) == (_name(smaller), _name(larger))


@pytest.mark.parametrize(
    ("size", "smaller", "larger"),
    [
        ("E4-2s_v3", "E2s_v3", "E8-2s_v3"),
        ("E8-2s_v3", "E4-2s_v3", "E16-4s_v3"),
        ("M16-4ms", "M8-4ms", "M32-8ms"),
        ("M8-2ms", None, "M16-4ms"),
        ("DS11-1_v2", "DS1_v2", "DS12-1_v2"),
        ("HB120-16rs_v2", None, None),
        ("M416-208s_v2", "M208s_v2", "M416-208ms_v2"),
    ],
)
def test_constrained_sizes_count_with_the_vcpus_that_are_left(
    size: str, smaller: str | None, larger: str | None
) -> None:
    """Who pays for licences by the vCPU is not sent to more of them than the next size needs."""
    assert (_smaller(f"Standard_{size}"), _larger(f"Standard_{size}")) == (_name(smaller), _name(larger))


def test_only_constrained_sizes_have_constrained_siblings() -> None:
    """No size with all its vCPUs is sent to one that lacks some."""
    siblings = [(*larger_siblings(FACTS, name, EARLY), *smaller_siblings(FACTS, name, EARLY)) for name in NAMES]
    offered = [size.name for name, sizes in zip(NAMES, siblings, strict=True) if _plain(name) for size in sizes]
    assert offered
    assert all(map(_plain, offered))


def test_every_hyphen_in_a_name_is_before_vcpus() -> None:
    """The reading of the names is right for the whole catalogue: fewer vCPUs are left than the size has, or as many."""
    hyphened = [name for name in NAMES if "-" in name]
    assert len(hyphened) > 200
    for name in hyphened:
        left = re.search(r"\d-(\d+)", name)
        size = FACTS.size(name)
        assert left is not None
        assert size is not None
        assert 0 < int(left[1]) <= size.vcpus


def test_siblings_are_of_the_series_and_truly_larger_or_smaller() -> None:
    """Over the whole catalogue: memory strictly, GPUs and FPGAs never the other way."""
    for name in NAMES:
        own = FACTS.size(name)
        assert own is not None
        for size in larger_siblings(FACTS, name, EARLY):
            assert size.series == own.series
            assert size.memory_gib > own.memory_gib
            assert size.gpus >= own.gpus
            assert size.fpgas >= own.fpgas
            assert size.vcpus >= own.vcpus or not _plain(size.name) or not _plain(name)
        for size in smaller_siblings(FACTS, name, EARLY):
            assert size.series == own.series
            assert size.memory_gib < own.memory_gib
            assert size.gpus <= own.gpus
            assert size.fpgas <= own.fpgas
            assert size.vcpus <= own.vcpus


def test_larger_and_smaller_are_two_sides_of_one_order() -> None:
    """Among sizes with all their vCPUs, one is larger than another exactly when that is smaller than it."""
    plain = [name for name in NAMES if _plain(name)]
    up = {(name, size.name) for name in plain for size in larger_siblings(FACTS, name, EARLY)}
    down = {(size.name, name) for name in plain for size in smaller_siblings(FACTS, name, EARLY)}
    assert up == down


def test_names_compare_without_case_and_the_unknown_has_no_siblings() -> None:
    """No name raises."""
    assert _larger("STANDARD_d4S_v3") == "Standard_D8s_v3"
    assert _smaller("standard_D4s_V3") == "Standard_D2s_v3"
    for name in ("", "Standard_D5s_v3", "D4s_v3", "Standard_D4s_v3 ", "Standard_E8-2"):
        assert larger_siblings(FACTS, name, NOW) == ()
        assert smaller_siblings(FACTS, name, NOW) == ()


def test_a_retired_size_is_not_offered() -> None:
    """From midnight (UTC) of the day on, neither larger nor, while there is another, smaller."""
    assert _larger("Standard_NC6s_v3", NOW) is None
    assert _larger("Standard_NC6s_v3", datetime(2025, 9, 29, 23, 59, 59, tzinfo=UTC)) == "Standard_NC12s_v3"
    assert _larger("Standard_NC6s_v3", datetime(2025, 9, 30, tzinfo=UTC)) is None
    assert _larger("Standard_E64i_v3", NOW) is None
    assert _smaller("Standard_E64i_v3", NOW) == "Standard_E48_v3"
    assert _larger("Standard_A7", NOW) is None
    before = datetime(2025, 9, 29, tzinfo=UTC)
    assert _smaller("Standard_NC24s_v3", before) == "Standard_NC12s_v3" == _smaller("Standard_NC24s_v3", NOW)


def test_the_sizes_of_a_series_are_found_without_case() -> None:
    """Also of a series that the documents do not list; of an unknown one there are none."""
    assert [size.name for size in FACTS.sizes_of("nvV3")] == [f"Standard_NV{n}s_v3" for n in (12, 24, 48)]
    assert len(FACTS.sizes_of("NCasT4_v3")) == 4
    assert FACTS.sizes_of("nope") == ()


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("Standard_D4s_v3", "Standard_D16s_v3", True),
        ("Standard_D4s_v3", "Standard_D32s_v3", False),
        ("Standard_D32s_v3", "Standard_F72s_v2", True),
        ("Standard_M64", "Standard_F72s_v2", False),
        ("Standard_D16s_v3", "Standard_D4s_v3", True),
        ("Standard_D4s_v3", "Standard_NC4as_T4_v3", False),
        ("Standard_NC24ads_A100_v4", "Standard_NC96ads_A100_v4", True),
        ("Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5", False),
        ("Standard_NC24ads_A100_v4", "Standard_NV36ads_A10_v5", False),
        ("Standard_ND96isr_H200_v5", "Standard_ND96isr_MI300X_v5", False),
        ("Standard_NV36ads_A10_v5", "Standard_NV24ads_V710_v5", False),
        ("Standard_NP10s", "Standard_NC4as_T4_v3", False),
        # A retired size may go to the model of GPU that the vendor recommends; no size goes to a retired one.
        ("Standard_NC6s_v3", "Standard_NC24ads_A100_v4", True),
        ("Standard_NC6", "Standard_NC4as_T4_v3", True),
        ("Standard_NC24s_v3", "Standard_NC64as_T4_v3", False),
        ("Standard_NC6s_v3", "Standard_NV12s_v3", False),
        ("Standard_NC24ads_A100_v4", "Standard_NC24s_v3", False),
        ("Standard_NC6s_v3", "Standard_NC12s_v3", False),
        ("Standard_NV36ads_A10_v5", "Standard_NV32as_v4", False),
    ],
)
def test_what_can_replace_a_size(own: str, other: str, expected: bool) -> None:
    """About as large, offered beyond the notice, with the same kind of accelerator."""
    one, many = FACTS.size(own), FACTS.size(other)
    assert one is not None
    assert many is not None
    assert can_replace(FACTS, one, many, NOW) is expected


def test_a_size_that_retires_within_the_notice_replaces_none() -> None:
    """Of two sizes of one series, HBv2 retires on 2027-05-31."""
    own, other = FACTS.size("Standard_HB120rs_v2"), FACTS.size("Standard_HB120-64rs_v2")
    assert own is not None
    assert other is not None
    assert can_replace(FACTS, own, other, datetime(2026, 12, 1, tzinfo=UTC))
    assert not can_replace(FACTS, own, other, datetime(2026, 12, 3, tzinfo=UTC))
