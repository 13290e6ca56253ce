"""Which addresses a webhook may be sent to: those of the public internet, and networks allowed by name.

A job's submitter chooses the url, so that a request from here must not reach what only we can reach. It
is the address that counts, not the name: names are resolved once, every address is looked at, and only
one that has passed is dialled.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from headrace.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Sequence[str]]
"""From a host and a port to numeric addresses. May block; raises OSError."""

# The special-purpose registries of IANA. Written out, since what Python's `is_global` says of some of
# them differs between its releases.
_SPECIAL_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carriers' own
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_UNICAST_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR_SHIFT = 80


def resolve(host: str, port: int) -> Sequence[str]:
    """As the operating system does it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def networks(allowed: Sequence[str | Network]) -> tuple[Network, ...]:
    """The networks that are allowed besides the public ones."""
    try:
        return tuple(ip_network(one) for one in allowed)
    except ValueError as error:
        raise InvalidInput(f"{error}; write a network as 10.1.0.0/16") from error


def permitted(addresses: Sequence[str], allowed: Sequence[Network]) -> list[str]:
    """Those of the addresses that may be dialled, in order."""
    return [one for one in addresses if _is_permitted(ip_address(one), allowed)]


def is_public(address: Address) -> bool:
    """Global unicast, and no tunnel into something that is not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    if address.scope_id is not None:
        return False  # meant for one interface of this host
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address in _SIX_TO_FOUR:
        return is_public(IPv4Address(int(address) >> _SIX_TO_FOUR_SHIFT & 0xFFFF_FFFF))
    return address in _UNICAST_V6 and not any(address in network for network in _SPECIAL_V6)


def _is_permitted(address: Address, allowed: Sequence[Network]) -> bool:
    return is_public(address) or any(
        address.version == network.version and address in network for network in allowed
    )
