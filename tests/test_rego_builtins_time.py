"""The builtins of times give what OPA gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from policyeng.rego.builtins import OperandError, UnsupportedError, load_function
from policyeng.rego.values import Value, is_number
from tests.effort import effort
from tests.rego_oracle import Call, call_ours, find_differences, wrong_operands

LARGEST = (1 << 63) - 1
ZONES = [
    "",
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Africa/Monrovia",
    "America/St_Johns",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "EST",
    "Etc/GMT+5",
    "Europe/Dublin",
    "America/Sao_Paulo",
]
NO_ZONES = ["nope", "../x", "/etc", "Europe", "Europe/Berlin ", "x\x00y"]
PARTS = [
    "January",
    "Jan",
    "Janu",
    "Monday",
    "Mon",
    "Month",
    "MST",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "002",
    "15",
    "1",
    "2",
    "2006",
    "_2",
    "_2006",
    "__2",
    "3",
    "4",
    "5",
    "PM",
    "pm",
    "-070000",
    "-07:00:00",
    "-0700",
    "-07:00",
    "-07",
    "Z070000",
    "Z07:00:00",
    "Z0700",
    "Z07:00",
    "Z07",
    ".000",
    ",999",
    ".9",
    ".0000000000",
    "07",
    "8",
    "é",
    " ",
    "  ",
    "/",
    "T",
    ":",
    "-",
    ".",
]
LAYOUTS = [
    "ANSIC",
    "UnixDate",
    "RubyDate",
    "RFC822",
    "RFC822Z",
    "RFC850",
    "RFC1123",
    "RFC1123Z",
    "RFC3339",
    "RFC3339Nano",
    "Kitchen",
    "2006-01-02 15:04:05.999999",
    "02/01/2006",
    "3:04PM",
    "2006-002",
    "06-1-2",
]
NUMBERS: list[Value] = [
    0,
    -1,
    1,
    LARGEST,
    -LARGEST - 1,
    LARGEST + 1,
    -LARGEST - 2,
    10**30,
    999_999_999,
    -999_999_999,
    1.0,
    1.5,
    1e18,
    1e19,
    -1e18,
    1e-7,
    0.1,
]
AMOUNTS: list[Value] = [
    0,
    0,
    0,
    1,
    -1,
    12,
    -13,
    31,
    -365,
    100,
    1.0,
    1.5,
    LARGEST,
    -LARGEST - 1,
    LARGEST + 1,
    1 << 57,
    "x",
    None,
    1e3,
]
FAR = [amount for amount in AMOUNTS if is_number(amount) and abs(amount) > 1 << 31]
NEAR = [amount for amount in AMOUNTS if amount not in FAR]
NO_MOMENTS: list[Value] = [
    None,
    True,
    "x",
    [],
    {},
    {1},
    [True],
    ["1"],
    [1, 2],
    [1, None],
    [1, "UTC", 3],
    [1, "UTC", None],
    [[1]],
]
#: Layouts and texts whose meaning only Go's source has.
ODD_TEXTS: list[tuple[Value, Value]] = [
    ("MST", "CET"),
    ("MST", "GMT+3"),
    ("MST", "GMT+33"),
    ("MST", "GMT-"),
    ("MST", "+03"),
    ("MST", "WITA"),
    ("MST", "ABCDE"),
    ("MST", "ABCDT"),
    ("MST", "ChST"),
    ("MST", "UTCX"),
    ("MST", "AB"),
    ("MST", ""),
    ("-070000", "-000001"),
    (".000", ".+12"),
    (".000", ".-12"),
    (".000000000000", ".123456789xyz"),
    ("06", "+5"),
    ("06", "-5"),
    ("2006", "2+06"),
    ("3PM", "12AM"),
    ("3PM", "12PM"),
    ("15PM", "13AM"),
    ("PMpm", "AMpm"),
    ("PMPM", "PMAM"),
    ("PMPM", "AMPM"),
    ("2006-002", "2020-366"),
    ("2006-002", "2021-366"),
    ("2006-002 01", "2020-060 02"),
    ("2006-002 01", "2020-060 03"),
    ("__2", "  1"),
    ("__2 2006", "366 2000"),
    ("Jan", "jAN"),
    ("January", "JANUARY 1"),
    ("1 2 2006", "2 29 2000"),
    ("1 2 2006", "2 29 1900"),
    ("5.0", "1.5"),
    ("5", "1.5"),
    ("5 .9", "1.5"),
    ("002", "000"),
]
RFC3339 = [
    "1990-12-31T23:59:60Z",
    "1990-12-31T15:59:59-08:00",
    "2000-02-30T00:00:00Z",
    "1677-09-21T00:12:43.145224192Z",
    "1677-09-21T00:12:43.145224191Z",
    "2262-04-11T23:47:16.854775807Z",
    "2262-04-11T23:47:16.854775808Z",
    "2020-01-01T00:00:00,5Z",
    "2020-01-01T00:00:00.1234567891234Z",
    "2020-1-01T00:00:00Z",
    "2020-01-01t00:00:00z",
    "2020-01-01T00:00:00+24:00",
    "2020-01-01T00:00:00+24:61",
    "2020-01-01T00:00:00",
    "0000-01-01T00:00:00Z",
    "",
]
AMOUNT_TEXTS = [
    "",
    "1",
    "0",
    "12",
    "1.5",
    ".5",
    "1.",
    "99999999999",
    "9223372036",
    "9223372036854775808",
    "0.33333333333333333333",
    "1..2",
    ".",
    "2540400",
    "106751",
    "292",
    "1e3",
    "0.1",
]
UNITS = ["ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w", "y", "x", "H", ""]
DURATIONS: list[Value] = [
    "",
    "0",
    "-0",
    "+0",
    "+",
    "-",
    "9223372036854775807ns",
    "9223372036854775808ns",
    "-9223372036854775808ns",
    "-9223372036854775809ns",
    "1d",
    "1.5d2.5h",
    "1.2.3d",
    "1D",
    "1mo",
    "0.0000001y",
    "1e3d",
]


def nanoseconds(draw: random.Random) -> Value:
    """A time as a number, most often a possible one."""
    kind = draw.random()
    if kind < 0.2:
        return draw.choice(NUMBERS)
    return draw.randint(-LARGEST, LARGEST) if kind < 0.6 else draw.randint(0, 2 * 10**18)


def layout(draw: random.Random) -> str:
    """A named layout or parts of layouts."""
    if draw.random() < 0.4:
        return draw.choice(LAYOUTS)
    return "".join(draw.choice(PARTS) for _ in range(draw.randint(0, 6)))


def moment(draw: random.Random) -> Value:
    """A time in one of its forms, or nothing of the kind."""
    kind = draw.random()
    if kind < 0.1:
        return draw.choice(NO_MOMENTS)
    if kind < 0.4:
        return nanoseconds(draw)
    zone = draw.choice(ZONES if draw.random() < 0.9 else NO_ZONES)
    return [nanoseconds(draw), *[zone, layout(draw)][: draw.randint(0, 2)]]


def changed(draw: random.Random, text: str) -> str:
    """A text with up to two changes."""
    characters = list(text)
    for _ in range(draw.choice([0, 0, 0, 1, 1, 2])):
        place = draw.randint(0, len(characters))
        characters[place : place + draw.randint(0, 1)] = draw.choice([*"0123456789 :-+.,ZTAMPjJsſKé", ""])
    return "".join(characters)


def test_times_are_those_of_opa(opa: Path) -> None:
    """Drawn times in drawn zones with drawn layouts, and operands of other types."""
    draw = random.Random(7)  # noqa: S311  # the same cases every time
    cases: list[Call] = wrong_operands("time.add_date", 0, 0, 0, 0)
    for name in ("time.format", "time.date", "time.clock", "time.weekday"):
        cases += wrong_operands(name, 0)
    for _ in range(effort(150, 2000)):
        cases += [("time.format", [moment(draw)]), ("time.format", [[draw.randint(0, LARGEST), "UTC", layout(draw)]])]
        cases += [(f"time.{name}", [moment(draw)]) for name in ("date", "clock", "weekday")]
        amounts = [draw.choice([draw.choice(NEAR), draw.randint(-300, 300)]) for _ in range(3)]
        cases += [("time.add_date", [moment(draw), *amounts]), ("time.diff", [moment(draw), moment(draw)])]
    assert find_differences(opa, cases) == []


def test_dates_where_the_calendar_of_go_wraps_around_are_refused() -> None:
    """OPA has a time for some of them, which means nothing."""
    for amount in FAR:
        with pytest.raises((UnsupportedError, OperandError)):
            load_function("time.add_date")(0, amount, 0, 0)


def test_texts_are_read_as_by_opa(opa: Path) -> None:
    """Times that were formatted and then changed, and durations."""
    draw = random.Random(8)  # noqa: S311  # the same cases every time
    cases: list[Call] = [("time.parse_ns", [*pair]) for pair in ODD_TEXTS]
    cases += [("time.parse_rfc3339_ns", [text]) for text in RFC3339]
    cases += [("time.parse_duration_ns", [text]) for text in DURATIONS]
    cases += wrong_operands("time.parse_ns", "2006", "2006") + wrong_operands("time.parse_rfc3339_ns", None)
    cases += wrong_operands("time.parse_duration_ns", None)
    for _ in range(effort(600, 10_000)):
        form = layout(draw) or "2006"
        text = call_ours("time.format", [[draw.randint(-LARGEST, LARGEST), draw.choice(ZONES), form]])
        cases.append(("time.parse_ns", [form, changed(draw, str(text.value))]))
        parts = (draw.choice(AMOUNT_TEXTS) + draw.choice(UNITS) for _ in range(draw.randint(1, 3)))
        cases.append(("time.parse_duration_ns", [draw.choice(["", "", "", "-", "+", " "]) + "".join(parts)]))
    cases += [("time.parse_rfc3339_ns", [changed(draw, "2021-03-04T05:06:07.089+01:00")]) for _ in range(60)]
    assert find_differences(opa, cases) == []


def test_the_zone_of_the_machine_is_refused() -> None:
    """The same input gives the same result everywhere."""
    with pytest.raises(UnsupportedError, match="depends on the machine"):
        load_function("time.clock")([0, "Local"])
