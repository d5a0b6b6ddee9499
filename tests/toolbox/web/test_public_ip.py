"""Only addresses on the Internet are public, in whatever form they are written."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.toolbox.web import address
from qwendesk.toolbox.web.address import is_public, own_networks


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1",
        "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
        "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250",
        "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8", "2002:7f00:1::", "2002:c0a8:101::1",
        "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "3fff::1", "fc00::1", "fd00:ec2::254",
        "fe80::1", "fe80::1%eth0", "2606:2800:220:1::1%eth0", "fec0::1", "ff02::1", "5f00::1", "100::1", "4000::1",
        "", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", " 8.8.8.8", "8.8.8.8/32",
    ],
)  # fmt: skip
def test_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1",
        "223.255.255.255", "2606:2800:220:1::1", "2a00:1450::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8",
    ],
)  # fmt: skip
def test_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    inner = getattr(address, "ipv4_mapped", None) or address
    if inner.is_private or inner.is_loopback or inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        assert not is_public(str(address))


@given(st.ip_addresses(v=4))
def test_an_address_of_version_4_is_judged_alike_in_each_form(address: ipaddress.IPv4Address) -> None:
    for form in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert is_public(form) == is_public(str(address))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80))))


class _Card:
    def __init__(self, address: str, netmask: str | None) -> None:
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.address, self.netmask = address, netmask


def test_devices_of_the_own_home_are_not_public(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = {
        "eth0": [_Card("2a02:810d:1234:5600::7", "ffff:ffff:ffff:ffff::"), _Card("192.168.1.7", "255.255.255.0")],
        "ppp0": [
            _Card("91.10.20.30", "255.255.255.255"),
            _Card("fe80::1%eth0", None),
            _Card("aa:bb:cc:dd:ee:ff", None),
        ],
        "tun0": [_Card("95.1.2.3", "0.0.0.0"), _Card("96.1.2.3", None)],
    }
    monkeypatch.setattr(address.psutil, "net_if_addrs", lambda: cards)
    own = own_networks()
    for each in (
        "2a02:810d:1234:5600::9",
        "2a02:810d:1234:56ff::1",
        "91.10.20.30",
        "95.1.2.3",
        "::ffff:91.10.20.30",
    ):
        assert not is_public(each, own), each
    for each in ("2a02:810d:1234:5700::9", "91.10.20.31", "95.1.2.4", "8.8.8.8"):
        assert is_public(each, own), each


def test_networks_of_this_pc_can_be_asked_for() -> None:
    assert all(is_public(str(network.network_address)) or network.version == 6 for network in own_networks())
