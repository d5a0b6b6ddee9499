"""A file of ours with one bad byte, as a failing disk leaves it, is passed over: the app starts without it."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from qwendesk.app.window.window_state import WindowState, read_window_state
from qwendesk.chat.presets import PresetsService
from qwendesk.chat.prompt_library import PromptLibrary
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_manifest import MANIFEST_NAME, BrokenEngine
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import read_language
from qwendesk.engine.engine_folders import read_engine
from qwendesk.engines.crash_counts import CrashCounts
from qwendesk.engines.measurements import MeasuredLoads, MeasuredSpeeds
from qwendesk.help.crash_reports import CrashReports
from qwendesk.hub import access_tokens
from qwendesk.hub.catalog import BadCatalog, decode_catalog
from qwendesk.hub.catalog_schema import SCHEMA_VERSION
from qwendesk.hub.catalog_updates import CatalogStore, LastLookUp
from qwendesk.hub.download_queue import read_queue
from qwendesk.hub.file_hashes import HashMemory
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import Library, scan
from qwendesk.hub.library_places import SearchFolder
from qwendesk.hub.model_folders import default_models_folder, read_folders
from qwendesk.models.last_model import LastModel
from qwendesk.models.new_models import new_models_file
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService

ROOT = Path(__file__).resolve().parent.parent


def _found_by_scan(file: Path, place: SearchFolder) -> Library:
    """What a scan found, without the folders it read, which are there whatever they hold."""
    return msgspec.structs.replace(scan([place], HeaderCache(file.with_name("headers"))), folders=())


def _last_model(file: Path) -> object:
    engine: Any = SimpleNamespace(observed=SimpleNamespace(subscribe=lambda _callback: lambda: None))
    return LastModel(engine, None, file).read()


def _preset_names(file: Path) -> object:
    chat: Any = SimpleNamespace()
    return PresetsService(chat, file).state.value.names


def _marks_left(file: Path) -> list[str]:
    reports = CrashReports(file.parent, file.parent / "log")
    reports.begin()
    reports.end()
    return [path.name for path in file.parent.glob("running-*.json")]


def _refused(read: Callable[[], object]) -> str:
    with pytest.raises(QwenDeskError) as caught:
        read()
    return caught.value.title


FILES: dict[str, tuple[bytes, Callable[[Path], object], object]] = {
    f"engine/{MANIFEST_NAME}": (
        b'{"name": "\xff", "package_version": "1"}',
        lambda file: type(read_engine(file.parent)),
        BrokenEngine,
    ),
    "settings.json": (b'{"language": "\xff"}', lambda file: SettingsService(file).options, AppOptions()),
    "last-model.json": (b'{"model": "\xff"}', _last_model, None),
    "window.json": (b'{"page": "\xff"}', read_window_state, WindowState()),
    "crash-1.json": (
        b'{"of": "app", "time": "\xff", "version": "", "system": "", "sentence": ""}',
        lambda file: CrashReports(file.parent).pending(),
        (),
    ),
    "running-1.json": (b'{"pid": 1, "started_s": 1, "time": "\xff", "version": ""}', _marks_left, []),
    "crashes.json": (b'{"version": "\xff", "counts": {}}', lambda file: CrashCounts(file).count("cuda"), 0),
    "measured_loads.json": (b'{"\xff": []}', lambda file: MeasuredLoads(file).drift, ()),
    "speeds.json": (b'{"speeds": {"\xff": 1}}', lambda file: vars(MeasuredSpeeds(file))["_speeds"], {}),
    "profiles.json": (b'{"m.gguf\xff": {}}', lambda file: ProfilesService(file).names("m.gguf"), ()),
    "profile.json": (
        b'{"format": "\xff", "values": {}}',
        lambda file: _refused(
            lambda: asyncio.run(ProfilesService(file.with_name("own.json")).import_file("m.gguf", file))
        ),
        "Not a profile",
    ),
    "prompts.json": (b'[{"name": "\xff"}]', lambda file: len(vars(PromptLibrary(file))["_own"]), 0),
    "presets.json": (b'{"format": "\xff"}', _preset_names, ()),
    "templates/templates.json": (
        b'{"o/r": {"commit": "\xff", "file": ""}}',
        lambda file: TemplatesService(folder=file.parent).repos.value,
        frozenset(),
    ),
    "config/model-folders.json": (
        b'{"models": ["\xff"]}',
        lambda _file: read_folders().models == (str(default_models_folder()),),
        True,
    ),
    "config/tokens.json": (
        b'{"hub.example": "\xff"}',
        lambda _file: "hub.example" in access_tokens.known_hosts(),
        False,
    ),
    "downloads.json": (b'[{"id": "\xff", "files": []}]', read_queue, ()),
    "catalog-updates.json": (b'{"\xff": {}}', lambda file: CatalogStore(folder=file.parent).updates, {}),
    "catalog-look-up.json": (
        b'{"problem": "\xff"}',
        lambda file: CatalogStore(folder=file.parent).read_last(),
        LastLookUp(),
    ),
    "catalog-new-models.json": (b'[{"name": "\xff"}]', lambda file: new_models_file(file.parent).read(), ()),
    "speed-reports.json": (
        b'[{"model": "\xff"}]',
        lambda file: CatalogStore(folder=file.parent).read_reports(),
        (),
    ),
    "hashes.json": (b'{"\xff": []}', lambda file: HashMemory(file).recall(file), None),
    "model-headers.msgpack": (
        b"\x82\xa6format\xa1\xff\xa7headers\x80",
        lambda file: HeaderCache(file).summary(str(file), 0, 0).facts,
        None,
    ),
    "ollama/manifests/host/name/model/tag": (
        b'{"layers": [{"mediaType": "\xff"}]}',
        lambda file: _found_by_scan(file, SearchFolder("ollama", str(file.parents[4]))),
        Library(),
    ),
    "de.json": (b'{"name": "\xff", "texts": {}}', read_language, None),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_byte_counts_as_nothing_kept(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, read, nothing = FILES[name]
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "config")
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "ollama" / "blobs").mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    found = read(file)
    assert found == nothing


def test_a_catalog_with_a_bad_byte_says_what_to_do() -> None:
    with pytest.raises(BadCatalog, match="Install QwenDesk again"):
        decode_catalog(b'{"schema_version": %d, "sources": ["\xff"]}' % SCHEMA_VERSION)


def test_no_file_is_read_past_the_one_decoder() -> None:
    past = re.compile(r"msgspec\.json\.decode\([^\n]*read_bytes\(\)")
    found = [path for path in (ROOT / "qwendesk").rglob("*.py") if past.search(path.read_text(encoding="utf-8"))]
    assert found == []
