"""Tokens: kept for one host, in a file of this user alone where there is no keyring."""

import stat
import sys

import keyring
import pytest
from keyring.backends import fail

from qwendesk.core.json_file import JsonFile
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


def test_a_new_token_takes_the_place_of_the_old_one_at_once(monkeypatch):
    """Whoever reads the file meanwhile, or finds it after a crash, finds one of the two."""
    save_token("hub.example", "old")
    written, write = [], JsonFile.write

    def write_and_note(self, value):
        write(self, value)
        written.append(load_token("hub.example"))

    monkeypatch.setattr(JsonFile, "write", write_and_note)
    save_token("hub.example", "new")
    assert written == ["new"]


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
