"""A user whose folders have names that trip programs up: everything that the app keeps and reads works there.

`--basetemp` puts the same folders on another drive, on a network share or below a path of any length.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qwendesk.chat.exchange.service import ExchangeService
from qwendesk.chat.image_parts import image_part
from qwendesk.core.app_options import AppOptions
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.core.paths import data_folder, demo_mmproj, demo_model
from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import scan
from qwendesk.hub.library_places import SearchFolder
from qwendesk.hub.model_import import Imported, ImportItem, import_files
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from qwendesk.settings.service import SettingsService, settings_file
from tests.chat.chats_kit import ChatsKit
from tests.hub.hub_server import running_hub
from tests.pictures import ShapePicture
from tests.store.chat_nodes import node
from tests.user_folders import user_variables

LETTERS = "Jürgen O'Neil (模型) 100% #1 {0} 😀 & ünï"
LONG = "/".join(["a folder with a long name, as archives and backups have them"] * 5)
"""305 characters: with the rest of the path more than Windows' 260."""


def long_paths_are_allowed(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except OSError:
        return False
    return True


@pytest.fixture(params=[LETTERS, LONG], ids=["letters", "long"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds all folders of the user."""
    folder = tmp_path / request.param
    if request.param == LONG and sys.platform == "win32" and not long_paths_are_allowed(folder):
        pytest.skip("this Windows refuses paths of over 260 characters (LongPathsEnabled in its registry is 0)")
    for variable, path in user_variables(folder).items():
        Path(path).mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv(variable, path)
    return folder


@pytest.fixture
def picture(home: Path) -> Path:
    path = home / "Bild – 图片.png"
    ShapePicture("red", "circle").draw().save(path)
    return path


@pytest.fixture
def model(home: Path) -> Path:
    """The demo and its vision file, copied into a folder of models there as `models import` does it."""
    folder = home / "models" / "jemand" / "Qwen-模型-GGUF"
    sources = (demo_model(), demo_mmproj())
    outcome = import_files([ImportItem(str(path), str(folder / path.name), "copy") for path in sources])
    assert isinstance(outcome, Imported), outcome
    return folder / demo_model().name


def test_settings_are_kept_there(home: Path) -> None:
    first = SettingsService()
    first.change({"language": "de"})
    first.flush()
    assert settings_file().is_relative_to(home)
    assert settings_file().is_file()
    again = SettingsService()
    assert again.options == msgspec.structs.replace(AppOptions(), language="de")


async def test_chats_with_pictures_are_kept_exported_and_imported(home: Path, picture: Path) -> None:
    chats = await ChatsKit(data_folder()).start()
    chat_id = await chats.chat("Was ist das?", "1")
    image = image_part(picture)
    asked = node("q2", "q1", text="und das?")
    parts = (TextPart("und das?"), image)
    await chats.say(chat_id, msgspec.structs.replace(asked, message=Message("user", parts)))
    exported = {kind: home / f"Chats – 对话.{kind}" for kind in ("markdown", "html", "json")}
    for kind, path in exported.items():
        assert await ExchangeService(chats.chat_list).export(path, kind) == 1
    await chats.chat_list.close()

    await asyncio.to_thread(picture.unlink)
    again = await ChatsKit(data_folder()).start()
    tree = await again.chat_list.tree(chat_id)
    (kept,) = [part for part in tree.nodes["q2"].message.parts if isinstance(part, ImagePart)]
    assert Path(kept.path).is_relative_to(home)
    assert image_part(Path(kept.path)).sha256 == image.sha256
    await again.chat_list.close()

    other = await ChatsKit(home / "other").start()
    report = await ExchangeService(other.chat_list).import_from(exported["json"])
    assert (report.chats, report.left_out.pictures) == (1, 0)
    await other.chat_list.close()


def test_a_model_is_downloaded_there_and_found(home: Path) -> None:
    target = home / "models" / "jemand" / "Modell-GGUF" / "modell-Q8_0.gguf"
    with running_hub() as server:
        server.add("jemand/Modell-GGUF", target.name, demo_model().read_bytes())
        hub = Hub(Network(server.endpoint, ""))
        once = RetryPolicy(tries=1, first_wait_s=0.001, longest_wait_s=0.001)
        download_file(hub, hub.file("jemand/Modell-GGUF", target.name), target, lambda _: None, DownloadControl(), once)
        from huggingface_hub.utils import close_session

        close_session()
    assert target.read_bytes() == demo_model().read_bytes()
    (found,) = scan([SearchFolder("ours", home / "models")], HeaderCache()).models
    assert (found.path, found.facts.architecture, found.problem) == (str(target), "qwen35moe", "")


def test_the_engine_answers_there_about_a_picture(home: Path, model: Path, picture: Path) -> None:
    command = [sys.executable, "-m", "qwendesk", "ask", "--json", "--model", str(model), "--image", str(picture)]
    done = subprocess.run(
        [*command, "--max-tokens", "3", "--set", "n_threads=1", "What is it?"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["turns"][0]["image_tokens"] > 0
    assert "Traceback" not in done.stderr
