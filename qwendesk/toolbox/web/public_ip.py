"""Which IP addresses lie on the Internet, as opposed to this PC and the networks that it is in. Pure rules."""

import ipaddress
from collections.abc import Iterable

import psutil

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NOT_PUBLIC_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
            "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "168.63.129.16/32",  # where machines in Azure find what tells them their secrets
        ),
    )
)  # fmt: skip
"""IANA's registry of special addresses: unspecified, private, of carriers, loopback, link-local, documentation, tests,
multicast, reserved."""
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""All that IANA has given out for the Internet. Loopback, unique local, link-local and multicast lie outside."""
_NOT_PUBLIC_V6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Of those: protocols such as Teredo, documentation, 6to4. The first and the last contain IPv4 addresses."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Addresses that stand for IPv4 ones, in networks that have only IPv6."""
_HOME_PREFIX = 56
"""A home is given this much of an IPv6 address for all of its devices, or less."""


def is_public(address: str, own: Iterable[Network] = ()) -> bool:
    """Return whether an IP address is a place on the Internet, and in none of the networks `own`."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        contained = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
        if contained is None:
            is_global = not ip.scope_id and ip in _GLOBAL_V6 and not any(ip in each for each in _NOT_PUBLIC_V6)
            return is_global and not any(ip in network for network in own)
        ip = contained
    return not any(ip in network for network in (*_NOT_PUBLIC_V4, *own))


def own_networks() -> tuple[Network, ...]:
    """Return the networks of this PC whose addresses look public: with IPv6, all devices of a home have such ones."""
    found: list[Network] = []
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if is_public(each.address):
                is_v6 = ":" in each.address
                network = _network(each.address, str(_HOME_PREFIX) if is_v6 else each.netmask or "32")
                found.append(network if is_v6 or network.prefixlen >= 16 else _network(each.address, "32"))
    return tuple(found)


def _network(address: str, mask: str) -> Network:
    return ipaddress.ip_interface(f"{address}/{mask}").network
