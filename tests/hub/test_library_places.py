"""Where other apps keep their models on the three systems, computed on any of them."""

import sqlite3
from contextlib import closing
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import NoReturn

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

    def setting_in_database(self, path: PurePath, column: str) -> str:
        return self._texts.get(path, "") if column == "models" else ""


class FullDisk:
    """Every folder exists."""

    def text(self, path: PurePath) -> str:
        return ""

    def is_folder(self, path: PurePath) -> bool:
        return True

    def setting_in_database(self, path: PurePath, column: str) -> str:
        return ""


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
            LINUX / ".local/share/Jan/data/mlx/models",
            LINUX / ".config/Jan/data/llamacpp/models",
            LINUX / ".config/Jan/data/mlx/models",
            LINUX / "jan/models",
        ],
        "ollama": [LINUX / ".ollama/models", PurePosixPath("/usr/share/ollama/.ollama/models")],
        "openwebui": [LINUX / ".config/open-webui/models"],
        "llama.cpp": [LINUX / ".cache/llama.cpp"],
        "huggingface": [LINUX / ".cache/huggingface/hub"],
    }


def test_macos_places():
    assert everywhere(HostEnvironment("mac", MAC, {})) == {
        "lmstudio": [MAC / ".cache/lm-studio/models", MAC / ".lmstudio/models"],
        "jan": [
            MAC / "Library/Application Support/Jan/data/llamacpp/models",
            MAC / "Library/Application Support/Jan/data/mlx/models",
            MAC / "jan/models",
        ],
        "ollama": [MAC / ".ollama/models"],
        "openwebui": [MAC / "Library/Application Support/open-webui/models"],
        "llama.cpp": [MAC / "Library/Caches/llama.cpp"],
        "huggingface": [MAC / ".cache/huggingface/hub"],
    }


def test_windows_places():
    variables = {"APPDATA": "D:\\Roaming", "LOCALAPPDATA": "D:\\Local"}
    assert everywhere(HostEnvironment("win", WIN, variables)) == {
        "lmstudio": [WIN / ".cache/lm-studio/models", WIN / ".lmstudio/models"],
        "jan": [
            PureWindowsPath("D:/Roaming/Jan/data/llamacpp/models"),
            PureWindowsPath("D:/Roaming/Jan/data/mlx/models"),
            WIN / "jan/models",
        ],
        "ollama": [WIN / ".ollama/models"],
        "openwebui": [PureWindowsPath("D:/Roaming/open-webui/models")],
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
        ("JAN_DATA_FOLDER", "/big/jan", "jan", "/big/jan/llamacpp/models"),
        ("XDG_CONFIG_HOME", "/big/config", "openwebui", "/big/config/open-webui/models"),
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


@pytest.mark.parametrize(
    ("machine", "settings", "expected"),
    [
        # Jan's settings.json as Jan writes it after its data folder was moved.
        (
            HostEnvironment("win", WIN, {}),
            {WIN / "AppData/Roaming/Jan/settings.json": '{"data_folder":"D:\\\\jan.ai","quick_ask":false}'},
            SearchFolder("jan", PureWindowsPath("D:/jan.ai/llamacpp/models")),
        ),
        (
            HostEnvironment("mac", MAC, {}),
            {MAC / "Library/Application Support/Jan/settings.json": '{"data_folder":"/Volumes/T7/jan"}'},
            SearchFolder("jan", PurePosixPath("/Volumes/T7/jan/llamacpp/models")),
        ),
        # The model location of Ollama's window, in its database.
        (
            HostEnvironment("win", WIN, {"LOCALAPPDATA": "D:\\Local"}),
            {PureWindowsPath("D:/Local/Ollama/db.sqlite"): "E:\\ollama"},
            SearchFolder("ollama", PureWindowsPath("E:/ollama")),
        ),
        # Ollama's FAQ moves the models of its service on Linux so.
        (
            HostEnvironment("linux", LINUX, {}),
            {
                PurePosixPath("/etc/systemd/system/ollama.service.d/override.conf"): (
                    '[Service]\nEnvironment="OLLAMA_HOST=0.0.0.0"\nEnvironment="OLLAMA_MODELS=/nvme2/ollama/models"\n'
                )
            },
            SearchFolder("ollama", PurePosixPath("/nvme2/ollama/models")),
        ),
        # As a distribution installs it.
        (
            HostEnvironment("linux", LINUX, {}),
            {
                PurePosixPath("/usr/lib/systemd/system/ollama.service"): (
                    "[Service]\nEnvironment=OLLAMA_MODELS=/var/lib/ollama\n#Environment=OLLAMA_MODELS=/old\n"
                )
            },
            SearchFolder("ollama", PurePosixPath("/var/lib/ollama")),
        ),
        (
            HostEnvironment("win", WIN, {}),
            {WIN / "AppData/Roaming/open-webui/config.json": '{"installDir": "F:\\\\owui", "port": 8080}'},
            SearchFolder("openwebui", PureWindowsPath("F:/owui/models")),
        ),
    ],
)
def test_folders_that_the_apps_own_settings_name(
    machine: HostEnvironment, settings: dict[PurePath, str], expected: SearchFolder
) -> None:
    disk = MadeUpDisk(expected.path, PurePosixPath("/old"), texts=settings)
    assert list(app_places(machine, disk)) == [expected]


@pytest.mark.parametrize("settings", ["", "{", "[]", '{"data_folder": 5}'])
def test_malformed_settings_of_jan_are_ignored(settings: str) -> None:
    usual = LINUX / ".local/share/Jan/data/llamacpp/models"
    disk = MadeUpDisk(usual, texts={LINUX / ".local/share/Jan/settings.json": settings})
    assert list(app_places(HostEnvironment("linux", LINUX, {}), disk)) == [SearchFolder("jan", usual)]


def test_ollamas_database_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE settings (id INTEGER PRIMARY KEY, models TEXT NOT NULL DEFAULT '')")
        database.execute("INSERT INTO settings (id, models) VALUES (1, '/big/ollama')")
        database.commit()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    folder = tmp_path.stat().st_mtime_ns
    assert FileLookup().setting_in_database(file, "models") == "/big/ollama"
    assert FileLookup().setting_in_database(file, "gone") == ""
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before
    assert tmp_path.stat().st_mtime_ns == folder, "no file was there for a moment"
    (tmp_path / "broken.sqlite").write_bytes(b"no database")
    assert FileLookup().setting_in_database(tmp_path / "broken.sqlite", "models") == ""
    assert FileLookup().setting_in_database(tmp_path / "none.sqlite", "models") == ""


def test_a_folder_that_may_not_be_looked_into_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of Ollama's service is closed to users outside of its group."""

    def refuse(_path: Path, **_options: bool) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    assert FileLookup().is_folder(PurePosixPath("/usr/share/ollama/.ollama/models"))


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
