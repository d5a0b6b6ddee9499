"""Addresses that a model names: only plain addresses of public hosts are taken, and the user sees the true host."""

import httpx2
import pytest

from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.address import MOST_CHARACTERS, checked_address, shown_host


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://page.example/boats?q=1#top", "https://page.example/boats?q=1"),
        ("page.example/boats", "https://page.example/boats"),
        ("  http://page.example  ", "http://page.example"),
        ("https://Page.Example:443/", "https://page.example/"),
        ("http://page.example:8080/", "http://page.example:8080/"),
        ("http://93.184.215.14/", "http://93.184.215.14/"),
        ("http://[2606:2800:220:1::1]/", "http://[2606:2800:220:1::1]/"),
        ("https://page.example/Grüße", "https://page.example/Gr%C3%BC%C3%9Fe"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
    ],
)
def test_addresses_that_are_taken(text: str, address: str) -> None:
    assert str(checked_address(text)) == address


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1/", "http://127.1/", "http://0x7f.1/", "http://0x7f000001/", "http://2130706433/",
        "http://0177.0.0.1/", "http://127.0.0.1.:80/", "http://localhost/", "http://LOCALHOST/", "http://a.localhost/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/", "http://169.254.169.254/latest/meta-data/", "http://100.100.100.200/",
        "http://\uff11\uff12\uff17.0.0.1/", "http://127\u30020\u30020\u30021/", "http://\u24dbocalhost/",
        "http://router/", "http://nas.local/", "http://fritz.lan/", "http://metadata.google.internal/",
        "http://x.home.arpa/", "http://x.onion/", "http://page.example./", "http://127.0.0.1%2f.page.example/",
        "http://ex%61mple.org/", "http://page.example\\@127.0.0.1/", "http://page.example\u200b/",
    ],
)  # fmt: skip
def test_hosts_that_are_not_on_the_internet_are_refused_without_a_lookup(text: str) -> None:
    with pytest.raises(ToolError):
        checked_address(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("file:///etc/passwd", "https:// or http://"),
        ("ftp://page.example/", "https:// or http://"),
        ("http://user:secret@page.example/", "password"),
        ("http://page.example@127.0.0.1/", "password"),
        ("http://page.example:22/", "Port 22"),
        ("http://page.example:6553600/", "port"),
        ("https://page.example/\r\nHost: other", "not an address"),
        ("https://page.example/" + "a" * MOST_CHARACTERS, "longer than"),
        ("", "no valid host"),
        ("https:///page", "no valid host"),
        ("not an address", "no valid host"),
        ("http://[::1", "not an address"),
    ],
)
def test_other_addresses_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        checked_address(text)


@pytest.mark.parametrize(
    "target", ["//127.0.0.1/", "http://[::1]/", "https://user@page.example/", "javascript:1", "http://a"]
)
def test_targets_of_redirects_are_judged_alike(target: str) -> None:
    with pytest.raises(ToolError):
        checked_address(target, base=httpx2.URL("https://page.example/boats"))


def test_relative_target_stays_on_the_host() -> None:
    target = checked_address("../new?x=1#y", base=httpx2.URL("https://page.example/a/b"))
    assert str(target) == "https://page.example/new?x=1"


def test_lookalike_names_are_shown_as_they_are_looked_up() -> None:
    assert shown_host(checked_address("https://\u0430pple.com/")) == "xn--pple-43d.com (looks like \u0430pple.com)"
    assert shown_host(checked_address("https://page.example/")) == "page.example"
