"""Where other apps keep their models on the three systems, computed on any of them."""

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from qwendesk.hub.library_places import (
    FileLookup,
    HostEnvironment,
    SearchFolder,
    all_places,
    app_places,
    sync_service,
)
from qwendesk.hub.model_folders import ModelFolders

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


def everywhere(machine: HostEnvironment) -> dict[str, list[PurePath]]:
    found: dict[str, list[PurePath]] = {}
    for place in app_places(machine, FullDisk()):
        found.setdefault(place.origin, []).append(place.path)
    return found


def test_linux_places():
    assert everywhere(HostEnvironment("linux", LINUX, {})) == {
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


def test_macos_places():
    assert everywhere(HostEnvironment("mac", MAC, {})) == {
        "lmstudio": [MAC / ".cache/lm-studio/models", MAC / ".lmstudio/models"],
        "jan": [MAC / "Library/Application Support/Jan/data/llamacpp/models", MAC / "jan/models"],
        "ollama": [MAC / ".ollama/models"],
        "llama.cpp": [MAC / "Library/Caches/llama.cpp"],
        "huggingface": [MAC / ".cache/huggingface/hub"],
    }


def test_windows_places():
    variables = {"APPDATA": "D:\\Roaming", "LOCALAPPDATA": "D:\\Local"}
    assert everywhere(HostEnvironment("win", WIN, variables)) == {
        "lmstudio": [WIN / ".cache/lm-studio/models", WIN / ".lmstudio/models"],
        "jan": [PureWindowsPath("D:/Roaming/Jan/data/llamacpp/models"), WIN / "jan/models"],
        "ollama": [WIN / ".ollama/models"],
        "llama.cpp": [PureWindowsPath("D:/Local/llama.cpp")],
        "huggingface": [WIN / ".cache/huggingface/hub"],
    }


def test_windows_places_without_environment_variables():
    found = everywhere(HostEnvironment("win", WIN, {}))
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
def test_environment_variables_move_folders(variable, value, origin, expected):
    assert everywhere(HostEnvironment("linux", LINUX, {variable: value}))[origin][0] == PurePosixPath(expected)


def test_moved_lm_studio_home_and_downloads_are_found():
    home = PureWindowsPath("E:/LM")
    disk = MadeUpDisk(
        PureWindowsPath("F:/Models"),
        home / "models",
        texts={
            WIN / ".lmstudio-home-pointer": "E:\\LM\n",
            home / "settings.json": '{"downloadsFolder": "F:\\\\Models", "theme": "dark"}',
        },
    )
    assert list(app_places(HostEnvironment("win", WIN, {}), disk)) == [
        SearchFolder("lmstudio", PureWindowsPath("F:/Models")),
        SearchFolder("lmstudio", home / "models"),
    ]


@pytest.mark.parametrize("settings", ["", "{", "[]", '{"downloadsFolder": 5}'])
def test_malformed_lm_studio_settings_are_ignored(settings):
    disk = MadeUpDisk(LINUX / ".lmstudio/models", texts={LINUX / ".lmstudio/settings.json": settings})
    assert list(app_places(HostEnvironment("linux", LINUX, {}), disk)) == [
        SearchFolder("lmstudio", LINUX / ".lmstudio/models")
    ]


def test_apps_not_installed_have_no_place():
    assert list(app_places(HostEnvironment("linux", LINUX, {}), MadeUpDisk())) == []


def test_folder_named_twice_is_one_place():
    machine = HostEnvironment("linux", LINUX, {"OLLAMA_MODELS": "/h/ann/.ollama/models"})
    assert len(list(app_places(machine, MadeUpDisk(LINUX / ".ollama/models")))) == 1


def test_places_on_the_real_disk_can_be_listed(tmp_path):
    (tmp_path / ".lmstudio" / "models").mkdir(parents=True)
    (tmp_path / ".lmstudio-home-pointer").write_text(str(tmp_path / "gone"))
    folders = ModelFolders((str(tmp_path / "ours"),), added=(str(tmp_path / "more"),))
    assert all_places(folders, HostEnvironment("linux", tmp_path, {}), FileLookup())[0] == SearchFolder(
        "lmstudio", tmp_path / ".lmstudio" / "models"
    )


ONEDRIVE = {"OneDrive": "C:\\U\\ann\\OneDrive", "OneDriveCommercial": "C:\\U\\ann\\OneDrive - Firm"}


@pytest.mark.parametrize(
    ("machine", "folder", "service"),
    [
        (HostEnvironment("win", WIN, ONEDRIVE), WIN / "onedrive" / "Documents" / "models", "OneDrive"),
        (HostEnvironment("win", WIN, ONEDRIVE), WIN / "OneDrive - Firm", "OneDrive"),
        (HostEnvironment("win", WIN, ONEDRIVE), WIN / "OneDriveNot" / "models", ""),
        (HostEnvironment("win", WIN, {"OneDrive": ""}), WIN / "AppData", ""),
        (HostEnvironment("mac", MAC, {}), MAC / "Library" / "Mobile Documents" / "models", "iCloud Drive"),
        (HostEnvironment("mac", MAC, {}), MAC / "Library" / "CloudStorage" / "Dropbox" / "models", "Dropbox"),
        (HostEnvironment("mac", MAC, {}), MAC / "Library" / "CloudStorage" / "OneDrive-Personal", "OneDrive"),
        (HostEnvironment("mac", MAC, {}), MAC / "models", ""),
        (HostEnvironment("linux", LINUX, ONEDRIVE), LINUX / "OneDrive", ""),
    ],
)
def test_folders_that_a_cloud_service_uploads(machine: HostEnvironment, folder: PurePath, service: str) -> None:
    assert sync_service(folder, machine) == service
