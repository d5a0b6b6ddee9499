"""Keys, host names and origins."""

import stat
import sys
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.server.access import KEY_VARIABLE, Access, ServerKey, as_origins, program_name, read_keys, renew_key
from qwendesk.server.refusals import Refused

ACCESS = Access((ServerKey("qd-0123456789abcdef", "mine"),), ("my-pc",), ("https://example.com",))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]:8765", "192.168.1.5:80", "my-pc", "my-pc.:8765"]
)
def test_hosts_that_no_web_page_can_make_are_let_in(host: str) -> None:
    ACCESS.check_host(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8765", "", "localhost.evil.example", "[::1", "0"]
)
def test_other_host_names_are_refused(host: str) -> None:
    with pytest.raises(Refused) as caught:
        ACCESS.check_host(host)
    assert caught.value.status == 403


def test_web_pages_need_to_be_on_the_list() -> None:
    ACCESS.check_origin("")
    ACCESS.check_origin("https://example.com")
    for origin in ("https://evil.example", "null", "http://example.com", "http://localhost:3000"):
        with pytest.raises(Refused):
            ACCESS.check_origin(origin)


def test_all_web_pages_may_be_let_in_and_addresses_are_taken_as_people_paste_them() -> None:
    everyone = msgspec.structs.replace(ACCESS, origins=as_origins(["*"]))
    for origin in ("https://evil.example", "null", "chrome-extension://abcdef"):
        everyone.check_origin(origin)
    assert as_origins(["https://Example.COM/", "app://obsidian.md"]) == ("https://example.com", "app://obsidian.md")


def test_the_key_comes_in_either_header() -> None:
    assert ACCESS.client_of("/v1/models", {"Authorization": "Bearer qd-0123456789abcdef"}).name == "mine"
    assert ACCESS.client_of("/v1/models", {"x-api-key": "qd-0123456789abcdef"}).name == "mine"
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic qd-0123456789abcdef"},
        {"x-api-key": "é"},
    ):
        with pytest.raises(Refused) as caught:
            ACCESS.client_of("/v1/models", headers)
        assert caught.value.status == 401
        assert "qd-0" not in caught.value.sentence
    assert ACCESS.client_of("/health", {}) is None


def test_the_key_file_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "keys"
    (made,) = read_keys(file)
    assert read_keys(file) == (made,)
    assert len(made.key) > 30
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        read_keys(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_keys(tmp_path / "other")[0].key != made.key


def test_a_key_file_may_have_several_named_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    file.write_text("# mine\nqd-aaaaaaaaaaaaaaaaaa Claude Code\n\nqd-bbbbbbbbbbbbbbbbbb\n")
    assert [(key.key[3], key.name) for key in read_keys(file)] == [("a", "Claude Code"), ("b", "")]
    monkeypatch.setenv(KEY_VARIABLE, "qd-cccccccccccccccccc")
    assert [key.key[3] for key in read_keys(file)] == ["c"]


def test_weak_keys_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for text in ("", "short\n", "qd-aaaaaaaaaaaaaaaaaa\nshort\n"):
        file.write_text(text)
        with pytest.raises(QwenDeskError):
            read_keys(file)


def test_a_program_is_named_by_the_beginning_of_its_user_agent() -> None:
    assert program_name("claude-cli/2.1.0 (external, cli)") == "claude-cli"
    assert program_name("") == ""
    assert len(program_name("x" * 500)) == 40


def test_a_new_key_replaces_the_first_one_only(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# mine\nqd-0123456789abcdef laptop\nqd-fedcba9876543210 phone\n")

    renew_key(file)

    renewed, phone = read_keys(file)
    assert (renewed.name, phone.key) == ("laptop", "qd-fedcba9876543210")
    assert renewed.key != "qd-0123456789abcdef"
    assert file.read_text().startswith("# mine\n")
