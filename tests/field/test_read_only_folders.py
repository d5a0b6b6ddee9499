"""An ordinary user whose folders can't be written: a backup, a share, or what `sudo` has left behind."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import demo_model
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.network import NetworkService
from qwendesk.settings.service import SettingsService
from tests.field.grid import SERVER, Kind, Way, case
from tests.user_folders import user_variables

READ_ONLY = Kind(
    "A folder of the user can't be written, and the app ends with Python's words or without any",
    {
        **dict.fromkeys(SERVER, "the server writes nothing but its key, which the command line makes"),
        Way.MCP: "what MCP servers keep is one of the settings that the window writes",
    },
)
FOUND = "found by taking the right to write away, November 2026"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere modes of folders don't refuse their owner")
# Where there are files too, those that the app replaces or adds to.
_FILES = {
    "data/QwenDesk": {"chats.db": "", "downloads.json": "[]", "downloads.json.lock": ""},
    "config/QwenDesk": {"settings.json": "{}"},
    "cache/QwenDesk": {},
    "state/QwenDesk/log": {"window.log": ""},
}


@pytest.fixture(params=["new", "used"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The folders of a user, with or without files in them, all read-only."""
    root = tmp_path / "user"
    for folder, files in _FILES.items():
        (root / folder).mkdir(parents=True)
        for name, content in files.items() if request.param == "used" else ():
            (root / folder / name).write_text(content)
    (root / "home").mkdir()
    everything = [root, *root.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield root
    for path in everything:
        path.chmod(0o755)


def run(home: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the app without root's right to write everywhere. Return its exit code and all that it printed."""
    as_user = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("setpriv isn't installed: it takes root's rights away")
        as_user = [setpriv, "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    done = subprocess.run(
        [*as_user, sys.executable, "-m", "qwendesk", *arguments],
        env=os.environ | user_variables(home) | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


@case(READ_ONLY, Way.WINDOW, report=FOUND, before="failed")
def test_the_window_opens_and_answers(home: Path, tmp_path: Path) -> None:
    picture = tmp_path / "window.png"
    code, said = run(home, "--demo-tour", "--screenshot", str(picture), QT_QPA_PLATFORM="offscreen")
    assert (code, picture.exists()) == (0, True), said


@case(READ_ONLY, Way.CLI, report=FOUND, before="held")
def test_a_question_is_answered(home: Path) -> None:
    code, said = run(home, "ask", "--model", str(demo_model()), "Hello")
    assert (code, "demo model" in said) == (0, True), said


@case(READ_ONLY, Way.CLI, Way.IMPORT, report=FOUND, before="failed")
def test_models_are_listed_and_an_import_says_where_it_may_not_write(home: Path) -> None:
    code, said = run(home, "models", "list")
    assert (code, "There are no models yet" in said) == (0, True), said
    code, said = run(home, "models", "import", str(demo_model()))
    assert (code, f"can't write to {home / 'data/QwenDesk'}" in said, "Permission denied" in said) == (1, True, True), (
        said
    )


@case(READ_ONLY, Way.CLI, report=FOUND, before="held")
def test_a_server_says_which_key_it_cant_write(home: Path) -> None:
    code, said = run(home, "serve", "--port", "0", "--model", str(demo_model()))
    assert (code, "server.key" in said, "--key-file" in said) == (2, True, True), said


@case(READ_ONLY, Way.CLI, report=FOUND, before="failed")
def test_engines_are_listed(home: Path) -> None:
    code, said = run(home, "engines", "list")
    assert (code, "in use" in said, "Errno" in said) == (0, True, False), said


@case(READ_ONLY, Way.WINDOW, report=FOUND, before="failed")
async def test_a_download_says_where_it_may_not_write(tmp_path: Path) -> None:
    """A file stands where the folder should be, which refuses root too."""
    tmp_path.joinpath("data").touch()
    network = NetworkService(SettingsService(tmp_path / "settings.json"))
    library = LibraryService(HostEnvironment("linux", tmp_path, {}))
    downloads = DownloadsService(network, library, state_file=tmp_path / "data" / "downloads.json")
    downloads.start()
    try:
        with pytest.raises(QwenDeskError, match=r"QwenDesk can't write to .*data"):
            await downloads.add("owner/repo", "model.gguf")
    finally:
        await downloads.close()
