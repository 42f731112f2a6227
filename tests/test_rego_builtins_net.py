"""The builtins of networks give what OPA gives, and make no more addresses than the limit."""

from __future__ import annotations

import ipaddress
import random
from pathlib import Path

import pytest

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import UnsupportedError, load_function
from policyeng.rego.values import Value
from tests.effort import effort
from tests.rego_oracle import Call, find_differences, limited, wrong_operands

ADDRESSES = [
    "::",
    "::1",
    "1::",
    "::ffff:1.2.3.4",
    "::ffff:0:0",
    "fe80::1%eth0",
    "::1.2.3.4",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
    "1:2:3:4:5:6:1.2.3.4",
    "01.2.3.4",
    "1.2.3",
    "1.2.3.256",
    "::g",
    "1::2::3",
    ":::",
    "",
    "x",
    "1.2.3.4.5",
    "12345::",
    "::ffff:1.2.3.04",
    "2001:db8::",
    "1:2:3:4:5:6:7:8:9",
    "0:0:0:0:0:ffff:102:304",
    "::1:0:0:0",
    "0.0.0.0",  # noqa: S104  # an address in a text, to which nothing binds
    "255.255.255.255",
]
PREFIXES = ["0", "1", "8", "9", "16", "24", "30", "31", "32", "33", "64", "96", "104", "120", "127", "128", "129", "08"]
WRONG_PREFIXES = ["+8", "", "x", "000000000008", "8 ", "1/2", "٨"]


def address(draw: random.Random) -> str:
    """An address of any form, or nearly one."""
    kind = draw.random()
    if kind < 0.4:
        return ".".join(str(draw.choice([0, 10, 1, 255, 127, 128, 192, draw.randint(0, 255)])) for _ in range(4))
    if kind < 0.7:
        return ":".join(f"{draw.choice([0, 1, 0xFFFF, 0x2001, draw.randint(0, 65535)]):x}" for _ in range(8))
    return draw.choice(ADDRESSES)


def network(draw: random.Random) -> str:
    """A network, most often one of a few that have addresses in common."""
    if draw.random() < 0.4:
        return f"{address(draw)}/{draw.choice(PREFIXES if draw.random() < 0.9 else WRONG_PREFIXES)}"
    base = draw.choice(["10.0.0.", "10.0.1.", "192.168.0.", "2001:db8::", "::", "::ffff:1.2.3."])
    if base == "::ffff:1.2.3.":
        return f"{base}4/{draw.choice([120, 126, 128])}"
    if "." in base:
        return (
            f"{base}{draw.choice([0, 1, 2, 4, 128, draw.randint(0, 255)])}/{draw.choice([22, 23, 24, 25, 31, 32, 8])}"
        )
    return (
        f"{base}{draw.choice([0, 1, 2, 4, 8, draw.randint(0, 65535)]):x}/{draw.choice([112, 120, 126, 127, 128, 64])}"
    )


def mergeable(text: str) -> bool:
    """Return whether OPA can merge it: it ends with a panic where it writes such a network with fewer than 16 bytes."""
    try:
        found = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return True
    return found.version == 4 or int(found.network_address) >= 1 << 120


def collection(draw: random.Random) -> Value:
    """Networks in a collection of each kind, or nothing of the kind."""
    found: list[Value] = [
        draw.choice([network(draw), network(draw), [network(draw), 1]]) for _ in range(draw.randint(0, 3))
    ]
    if draw.random() < 0.05:
        found.append(draw.choice([[], 1, None, [1]]))
    kind = draw.random()
    if kind < 0.4:
        return found
    if kind < 0.6:
        return {one for one in found if type(one) is str}
    return {f"k{i}": one for i, one in enumerate(found)} if kind < 0.8 else draw.choice([network(draw), None, 1, "x"])


def test_networks_are_those_of_opa(opa: Path) -> None:
    """Drawn ones of IPv4 and IPv6, those of IPv4 within IPv6, and operands of other types."""
    draw = random.Random(2)  # noqa: S311  # the same cases every time
    cases: list[Call] = wrong_operands("net.cidr_contains", "10.0.0.0/8", "10.0.0.0/9")
    cases += wrong_operands("net.cidr_intersects", "10.0.0.0/8", "10.0.0.0/9")
    for name in ("net.cidr_is_valid", "net.cidr_expand", "net.cidr_merge"):
        cases += wrong_operands(name, None)
    for _ in range(effort(200, 2000)):
        cases += [
            ("net.cidr_is_valid", [network(draw)]),
            ("net.cidr_contains_matches", [collection(draw), collection(draw)]),
        ]
        for name in ("net.cidr_contains", "net.cidr_overlap", "net.cidr_intersects"):
            cases.append((name, [network(draw), draw.choice([network, network, address])(draw)]))
        merged = [text for text in (network(draw) for _ in range(draw.randint(0, 5))) if mergeable(text)]
        merged += [address(draw)] if draw.random() < 0.3 else []
        cases.append(("net.cidr_merge", [merged if draw.random() < 0.6 else set(merged)]))
        first = draw.choice(["10.0.0.0", "255.255.255.255", "1.2.3.77", "::1", "2001:db8::fff7", "::ffff:1.2.3.4", "x"])
        cases.append(("net.cidr_expand", [f"{first}/{(128 if ':' in first else 32) - draw.randint(0, 5)}"]))
    # Mapped networks are refused, because OPA compares 28 bytes of them with 16.
    cases = [case for case in cases if case[0] != "net.cidr_merge" or "::ffff" not in str(case[1])]
    assert find_differences(opa, cases) == []


def test_more_addresses_than_the_limit_are_refused() -> None:
    """Before they are made."""
    with limited(10, 10_000), pytest.raises(BudgetExceededError):
        load_function("net.cidr_expand")("::/0")


@pytest.mark.parametrize("networks", [["0.0.0.0/0", "::1:0:0:0/96"], ["::ffff:1.2.3.0/120"]])
def test_networks_of_both_families_are_not_merged(networks: list[str]) -> None:
    """OPA ends with a panic for the first ones."""
    with pytest.raises(UnsupportedError, match="IPv4"):
        load_function("net.cidr_merge")(networks)


def test_networks_that_opa_cannot_write_are_merged() -> None:
    """OPA ends with a panic."""
    assert load_function("net.cidr_merge")(["::1:0/113", "::1:8000/113"]) == {"::1:0/112"}
