"""Where other apps keep their models on the three systems, computed on any of them."""

from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import pytest

from qwendesk.hub.folders import ModelFolders
from qwendesk.hub.library_places import DiskLook, Machine, Place, all_places, app_places

LINUX, MAC, WIN = PurePosixPath("/h/ann"), PurePosixPath("/U/ann"), PureWindowsPath("C:/U/ann")


class MadeUpDisk:
    """Folders that exist, and small text files."""

    def __init__(self, *folders: PurePath, texts: dict[PurePath, str] | None = None) -> None:
        self._folders = set(folders)
        self._texts = texts or {}

    def text(self, path: PurePath) -> str:
        return self._texts.get(path, "")

    def is_folder(self, path: PurePath) -> bool:
        return path in self._folders


class FullDisk:
    """Every folder exists."""

    def text(self, path: PurePath) -> str:
        return ""

    def is_folder(self, path: PurePath) -> bool:
        return True


def everywhere(machine: Machine) -> dict[str, list[PurePath]]:
    found: dict[str, list[PurePath]] = {}
    for place in app_places(machine, FullDisk()):
        found.setdefault(place.origin, []).append(place.path)
    return found


def test_linux():
    assert everywhere(Machine("linux", LINUX, {})) == {
        "lmstudio": [LINUX / ".cache/lm-studio/models", LINUX / ".lmstudio/models"],
        "jan": [
            LINUX / ".local/share/Jan/data/llamacpp/models",
            LINUX / ".config/Jan/data/llamacpp/models",
            LINUX / "jan/models",
        ],
        "ollama": [LINUX / ".ollama/models", PurePosixPath("/usr/share/ollama/.ollama/models")],
        "llama.cpp": [LINUX / ".cache/llama.cpp"],
        "huggingface": [LINUX / ".cache/huggingface/hub"],
    }


def test_macos():
    assert everywhere(Machine("mac", MAC, {})) == {
        "lmstudio": [MAC / ".cache/lm-studio/models", MAC / ".lmstudio/models"],
        "jan": [MAC / "Library/Application Support/Jan/data/llamacpp/models", MAC / "jan/models"],
        "ollama": [MAC / ".ollama/models"],
        "llama.cpp": [MAC / "Library/Caches/llama.cpp"],
        "huggingface": [MAC / ".cache/huggingface/hub"],
    }


def test_windows():
    variables = {"APPDATA": "D:\\Roaming", "LOCALAPPDATA": "D:\\Local"}
    assert everywhere(Machine("win", WIN, variables)) == {
        "lmstudio": [WIN / ".cache/lm-studio/models", WIN / ".lmstudio/models"],
        "jan": [PureWindowsPath("D:/Roaming/Jan/data/llamacpp/models"), WIN / "jan/models"],
        "ollama": [WIN / ".ollama/models"],
        "llama.cpp": [PureWindowsPath("D:/Local/llama.cpp")],
        "huggingface": [WIN / ".cache/huggingface/hub"],
    }


def test_windows_without_its_variables():
    found = everywhere(Machine("win", WIN, {}))
    assert found["jan"][0] == WIN / "AppData/Roaming/Jan/data/llamacpp/models"
    assert found["llama.cpp"] == [WIN / "AppData/Local/llama.cpp"]


@pytest.mark.parametrize(
    ("variable", "value", "origin", "expected"),
    [
        ("OLLAMA_MODELS", "/big/ollama", "ollama", "/big/ollama"),
        ("LLAMA_CACHE", "~/llama", "llama.cpp", "/h/ann/llama"),
        ("HF_HUB_CACHE", "/big/hub", "huggingface", "/big/hub"),
        ("HUGGINGFACE_HUB_CACHE", "/big/hub", "huggingface", "/big/hub"),
        ("HF_HOME", "/big/hf", "huggingface", "/big/hf/hub"),
        ("XDG_CACHE_HOME", "/big/cache", "huggingface", "/big/cache/huggingface/hub"),
        ("XDG_CACHE_HOME", "/big/cache", "llama.cpp", "/big/cache/llama.cpp"),
        ("XDG_DATA_HOME", "/big/data", "jan", "/big/data/Jan/data/llamacpp/models"),
    ],
)
def test_variables_move_folders(variable, value, origin, expected):
    assert everywhere(Machine("linux", LINUX, {variable: value}))[origin][0] == PurePosixPath(expected)


def test_lm_studio_may_have_moved_its_home_and_its_downloads():
    home = PureWindowsPath("E:/LM")
    disk = MadeUpDisk(
        PureWindowsPath("F:/Models"),
        home / "models",
        texts={
            WIN / ".lmstudio-home-pointer": "E:\\LM\n",
            home / "settings.json": '{"downloadsFolder": "F:\\\\Models", "theme": "dark"}',
        },
    )
    assert list(app_places(Machine("win", WIN, {}), disk)) == [
        Place("lmstudio", PureWindowsPath("F:/Models")),
        Place("lmstudio", home / "models"),
    ]


@pytest.mark.parametrize("settings", ["", "{", "[]", '{"downloadsFolder": 5}'])
def test_lm_studios_settings_may_say_anything(settings):
    disk = MadeUpDisk(LINUX / ".lmstudio/models", texts={LINUX / ".lmstudio/settings.json": settings})
    assert list(app_places(Machine("linux", LINUX, {}), disk)) == [Place("lmstudio", LINUX / ".lmstudio/models")]


def test_apps_that_are_not_there_have_no_place():
    assert list(app_places(Machine("linux", LINUX, {}), MadeUpDisk())) == []


def test_a_folder_named_twice_is_one_place():
    machine = Machine("linux", LINUX, {"OLLAMA_MODELS": "/h/ann/.ollama/models"})
    assert len(list(app_places(machine, MadeUpDisk(LINUX / ".ollama/models")))) == 1


def test_the_real_disk(tmp_path):
    (tmp_path / ".lmstudio" / "models").mkdir(parents=True)
    (tmp_path / ".lmstudio-home-pointer").write_text(str(tmp_path / "gone"))
    folders = ModelFolders((str(tmp_path / "ours"),), added=(str(tmp_path / "more"),))
    assert all_places(folders, Machine("linux", tmp_path, {}), DiskLook())[0] == Place(
        "lmstudio", tmp_path / ".lmstudio" / "models"
    )


def test_other_apps_can_be_left_out():
    folders = ModelFolders(("ours",), added=("more",), other_apps=False)
    assert all_places(folders, Machine("linux", LINUX, {}), FullDisk()) == (
        Place("ours", Path("ours")),
        Place("folder", Path("more")),
    )


def test_only_the_users_own_folders_may_be_written():
    folders = ModelFolders(("ours",), added=("more",))
    places = all_places(folders, Machine("linux", LINUX, {}), FullDisk())
    assert {place.origin for place in places if not place.of_other_app} == {"ours", "folder"}
