"""The functions of ARM templates over IP networks in CIDR notation.

Each takes known values. It raises ExpressionError for invalid ones, and for what is not documented: the usable
addresses of an IPv4 network with fewer than four addresses.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-cidr.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network

from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.scalar_functions import Function, a_number, a_text

_CIDR = re.compile(r"[0-9A-Fa-f.:]{2,45}/[0-9]{1,3}")


def _network(text: object) -> IPv4Network | IPv6Network:
    written = a_text(text)
    try:
        if _CIDR.fullmatch(written):
            return ip_network(written)
    except ValueError:  # an invalid address or length, or an address inside the network
        pass
    raise ExpressionError("it is not a network in CIDR notation, such as `10.144.0.0/20`")


def _usable(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    """Return the offsets of the first and the last usable address from the network address."""
    last = network.num_addresses - 1
    if network.version == 6:
        return 0, last
    if last < 3:
        raise ExpressionError("the usable addresses of such a small network are not documented")
    return 1, last - 1


def _parsed(text: object) -> object:
    """Apply `parseCidr(network)`; only IPv4 has a `broadcast`."""
    network = _network(text)
    first, last = _usable(network)
    ends = {"broadcast": str(network.broadcast_address)} if network.version == 4 else {}
    return {
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        **ends,
        "firstUsable": str(network.network_address + first),
        "lastUsable": str(network.network_address + last),
        "cidr": network.prefixlen,
    }


def _subnet(text: object, length: object, index: object) -> str:
    """Apply `cidrSubnet(network, newCIDR, subnetIndex)`; indexes start at 0."""
    network, prefix, position = _network(text), a_number(length), a_number(index)
    if not network.prefixlen <= prefix <= network.max_prefixlen:
        raise ExpressionError(f"a subnet of it has a length of {network.prefixlen} to {network.max_prefixlen}")
    if not 0 <= position < 2 ** (prefix - network.prefixlen):
        raise ExpressionError("it has no subnet of that index")
    start = network.network_address + position * 2 ** (network.max_prefixlen - prefix)
    return f"{start}/{prefix}"


def _host(text: object, index: object) -> str:
    """Apply `cidrHost(network, hostIndex)`; index 0 is the address after the network address, also in IPv6."""
    network, position = _network(text), a_number(index)
    _, last = _usable(network)
    if not 0 <= position < last:
        raise ExpressionError("it has no usable address of that index")
    return str(network.network_address + 1 + position)


#: By name in lower case.
FUNCTIONS: Mapping[str, Function] = {"cidrhost": _host, "cidrsubnet": _subnet, "parsecidr": _parsed}
