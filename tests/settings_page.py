"""Fixtures of tests on the settings page, which shows the model folders and the access token too."""

from pathlib import Path

import keyring
import pytest
from keyring.backends import fail

from qwendesk.core import paths
from qwendesk.hub.model_folders import ModelFolders, write_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test's own, and a system without a keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    for name in ("HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "ours").mkdir()
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    yield tmp_path
    keyring.set_keyring(before)


@pytest.fixture
def page(home, make_desk, qt_loop):
    desk = make_desk()
    desk.window.show_page("settings")
    qt_loop.run(desk.parts.services.models.token.update())
    return desk
