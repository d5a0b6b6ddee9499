"""Tokens: kept for one host, in a file of this user alone where there is no keyring."""

import stat
import sys

import keyring
import pytest
from keyring.backends import fail

from qwendesk.hub.access_tokens import delete_token, load_token, save_token, token_file


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch):
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    yield
    token_file().unlink(missing_ok=True)
    keyring.set_keyring(before)


def test_a_token_is_saved_for_one_host():
    assert not save_token("hub.example", "secret")
    assert load_token("hub.example") == "secret"
    assert load_token("mirror.example") == ""
    delete_token("hub.example")
    assert load_token("hub.example") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_token_file_is_readable_by_its_user_only():
    save_token("hub.example", "secret")
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600


def test_environment_token_is_used_for_environment_endpoint(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "from-outside")
    assert load_token("huggingface.co") == "from-outside"
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    assert load_token("huggingface.co") == ""
    assert load_token("mirror.example") == "from-outside"
