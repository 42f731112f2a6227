"""Builtins that compute with networks. Nothing here looks up a name."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

from policyeng.rego.budget import charge
from policyeng.rego.builtins.registry import BuiltinError, UnsupportedError, builtin, check_string
from policyeng.rego.values import Value, from_key, make_set, members, ordered_keys

_MAPPED = 0xFFFF << 32
#: Addresses that are made between two looks at the clock.
_BLOCK = 4096


class _Network(NamedTuple):
    """A network: its first address, and the lengths of its prefix and of its addresses."""

    address: int
    prefix: int
    bits: int

    @property
    def last(self) -> int:
        return self.address | (1 << self.bits - self.prefix) - 1


@builtin("net.cidr_is_valid")
def is_valid_cidr(cidr: Value) -> Value:
    """Return whether a value is a network in CIDR notation."""
    return type(cidr) is str and _read_network(cidr) is not None


@builtin("net.cidr_contains")
@builtin("net.cidr_overlap")
def contains_cidr(cidr: Value, other: Value) -> Value:
    """Return whether a network contains an address or another network."""
    return _contains(_network(cidr), _address_or_network(other))


@builtin("net.cidr_intersects")
def intersects_cidr(left: Value, right: Value) -> Value:
    """Return whether two networks have addresses in common."""
    first, second = _network(left), _network(right)
    return _holds(first, second.address, second.bits) or _holds(second, first.address, first.bits)


@builtin("net.cidr_contains_matches")
def find_containing_cidrs(cidrs: Value, others: Value) -> Value:
    """Return the pairs of a network and of an address or network that it contains, as their keys."""
    left = list(_items(1, cidrs))
    right = list(_items(2, others)) if left else []
    if not right:
        return set()
    networks = [(key, _network(text)) for key, text in left]
    inner = [(key, _address_or_network(text)) for key, text in right]
    found: list[Value] = []
    for key, network in networks:
        charge(len(inner))
        found.extend([key, other] for other, one in inner if _contains(network, one))
    return make_set(found)


@builtin("net.cidr_expand")
def expand_cidr(cidr: Value) -> Value:
    """Return every address of a network."""
    network = _network(cidr)
    size = 1 << network.bits - network.prefix
    charge(size)
    found: set[str] = set()
    for start in range(0, size, _BLOCK):
        charge(0)
        first = network.address + start
        found.update(_address_text(first + i, network.bits) for i in range(min(_BLOCK, size - start)))
    return found


@builtin("net.cidr_merge")
def merge_cidrs(addresses: Value) -> Value:
    """Return the fewest networks that have the same addresses."""
    if type(addresses) is list:
        given = addresses
    elif type(addresses) is set:
        given = members(addresses)
    else:
        raise BuiltinError("operand must be an array")
    ranges = sorted(map(_range, given), key=lambda one: (one[1], one[0]))
    merged: list[tuple[int, int, str | None]] = []
    for one in ranges:
        joined: tuple[int, int, str | None] = one
        while merged and _previous(joined[0]) <= merged[-1][1]:
            joined = (min(merged.pop()[0], joined[0]), joined[1], None)
        merged.append(joined)
    found = {text for _, _, text in merged if text is not None}
    for first, last, text in merged:
        if text is not None:
            continue
        if _is_mapped(first) != _is_mapped(last) and _is_mapped(first):
            raise UnsupportedError("networks of IPv4 and IPv6 cannot be merged")
        ends = (_as_address(first), _as_address(last))
        if type(ends[0]) is not type(ends[1]):
            ends = (ipaddress.IPv6Address(first), ipaddress.IPv6Address(last))
        found.update(map(str, ipaddress.summarize_address_range(*ends)))
    return found


def _range(element: Value) -> tuple[int, int, str]:
    """Return the first and the last address, with IPv4 mapped into IPv6, and how the network is written."""
    if type(element) is not str:
        raise BuiltinError("element must be string")
    address = _read_address(element)
    if address is None:
        network = _read_network(element)
        if network is None:
            raise BuiltinError(f"invalid CIDR address: {element}")
        if network.bits == 128 and _is_mapped(network.address):
            raise UnsupportedError(f"an IPv4 network in the form of IPv6 cannot be merged: {element}")
        text = f"{_address_text(network.address, network.bits)}/{network.prefix}"
    elif not _is_mapped(address):
        raise BuiltinError("IPv6 invalid: needs prefix length")
    else:
        # Go takes an address of IPv4 for one in a network of its historical class.
        own = address & 0xFFFFFFFF
        prefix = 8 if own >> 31 == 0 else 16 if own >> 30 == 2 else 24
        network = _Network(own >> 32 - prefix << 32 - prefix, prefix, 32)
        text = f"{_address_text(own, 32)}/{prefix}"
    base = _MAPPED if network.bits == 32 else 0
    return base | network.address, base | network.last, text


def _previous(address: int) -> int:
    return address if address in (0, _MAPPED) else address - 1


def _items(position: int, collection: Value) -> Iterator[tuple[Value, Value]]:
    kind = type(collection)
    if kind is str:
        yield collection, collection
    elif kind is list:
        for index, element in enumerate(collection):
            yield index, _first(position, element)
    elif kind is set:
        for element in members(collection):
            yield element, _first(position, element)
    elif kind is dict:
        for key in ordered_keys(collection):
            yield from_key(key), _first(position, collection[key])


def _first(position: int, element: Value) -> Value:
    if type(element) is str:
        return element
    if type(element) is list and element:
        return element[0]
    raise BuiltinError(f"operand {position}: element must be string or non-empty array")


def _network(value: Value) -> _Network:
    network = _read_network(check_string(1, value))
    if network is None:
        raise BuiltinError(f"invalid CIDR address: {value}")
    return network


def _address_or_network(value: Value) -> int | _Network:
    """Return an address, with IPv4 mapped into IPv6, or a network."""
    address = _read_address(check_string(1, value))
    if address is not None:
        return address
    network = _read_network(value)
    if network is None:
        raise BuiltinError(f"not a valid textual representation of an IP address or CIDR: {value}")
    return network


def _read_address(text: str) -> int | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if address.version == 4:
        return _MAPPED | int(address)
    return None if "%" in text else int(address)


def _read_network(text: str) -> _Network | None:
    host, slash, digits = text.partition("/")
    if not slash or not digits.isascii() or not digits.isdigit():
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    significant = digits.lstrip("0") or "0"
    prefix = int(significant) if len(significant) < 4 else 1000
    bits = address.max_prefixlen
    if "%" in host or prefix > bits:
        return None
    return _Network(int(address) >> bits - prefix << bits - prefix, prefix, bits)


def _contains(network: _Network, other: int | _Network) -> bool:
    if isinstance(other, int):
        return _holds(network, other, 128)
    if network.bits == other.bits == 128 and not _is_mapped(network.address) and not _is_mapped(other.address):
        return network.prefix <= other.prefix and network.address <= other.address <= network.last
    return _holds(network, other.address, other.bits) and _holds(network, other.last, other.bits)


def _holds(network: _Network, address: int, bits: int) -> bool:
    # Go compares every address that is IPv4, or IPv4 mapped into IPv6, as IPv4.
    own, own_bits = _reduce(network.address, network.bits)
    given, given_bits = _reduce(address, bits)
    free = network.bits - network.prefix
    return own_bits == given_bits and own >> free == given >> free


def _reduce(address: int, bits: int) -> tuple[int, int]:
    return (address & 0xFFFFFFFF, 32) if bits == 128 and _is_mapped(address) else (address, bits)


def _is_mapped(address: int) -> bool:
    return address >> 32 == 0xFFFF


def _as_address(address: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.IPv4Address(address & 0xFFFFFFFF) if _is_mapped(address) else ipaddress.IPv6Address(address)


def _address_text(address: int, bits: int) -> str:
    own, own_bits = _reduce(address, bits)
    return str(ipaddress.IPv4Address(own) if own_bits == 32 else ipaddress.IPv6Address(own))
