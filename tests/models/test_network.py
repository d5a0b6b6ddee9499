"""One switch and no connection; other settings of the network take effect at once; the token."""

import asyncio
import functools
import hashlib
import socket
import stat
import sys
from pathlib import Path

import keyring
import msgspec
import pytest
import pytest_asyncio
from keyring.backends import fail

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.hub.access_tokens import token_file
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import DownloadControl
from qwendesk.hub.evidence import FileEvidence, gather
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.hub_comparison import compare_with_hub
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.hub.network import HubError
from qwendesk.hub.remote import FixedAddresses, RemoteFile
from qwendesk.hub.remote_header import remote_facts
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.fit import Pc
from qwendesk.models.library_service import LibraryService
from qwendesk.models.network import NetworkService, TokenService, TokenTest
from qwendesk.models.offers import Offers
from qwendesk.models.search import ModelSearch
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.service import SettingsService
from tests.gguf_files import header_of, model_values, write_model
from tests.hub.hub_server import COMMIT, running_hub

ENGINE = b"engine" * 100
REPO, NAME = "someone/Model-4B-GGUF", "model-4B.gguf"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    from huggingface_hub.utils import close_session

    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    write_folders(ModelFolders((str(tmp_path / "ours"),)))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        hub.add(REPO, NAME, header_of(model_values()))
        hub.add(REPO, "engine.zip", ENGINE)
        hub.plain.add("engine.zip")
        hub.add(REPO, "chat_template.jinja", b"{{ messages }}")
        yield hub
        close_session()
    keyring.set_keyring(before)


@pytest.fixture
def connects(monkeypatch) -> list[object]:
    """Every attempt to look up a name or to connect a socket, from any thread of this process."""
    seen: list[object] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def noted_connect(self: socket.socket, address: object) -> None:
        seen.append(address)
        connect(self, address)

    @functools.wraps(look_up)
    def noted_look_up(*arguments, **named):
        seen.append(arguments)
        return look_up(*arguments, **named)

    monkeypatch.setattr(socket.socket, "connect", noted_connect)
    monkeypatch.setattr(socket, "getaddrinfo", noted_look_up)
    return seen


class Desk:
    """The settings with what hangs on them."""

    def __init__(self, folder: Path) -> None:
        self.settings = SettingsService(folder / "settings.json")
        self.network = NetworkService(self.settings)
        self.token = TokenService(self.network)
        models = LibraryService(HostEnvironment("linux", folder / "home", {}))
        self.downloads = DownloadsService(self.network, models, state_file=folder / "downloads.json")


@pytest_asyncio.fixture
async def desk(hub, tmp_path):
    desk = Desk(tmp_path)
    desk.downloads.start()
    yield desk
    await desk.downloads.close()
    desk.network.close()


async def token_test(desk: Desk) -> TokenTest:
    await desk.token.test()
    test = desk.token.state.value.test
    assert test is not None
    return test


FILE = RemoteFile(REPO, NAME, COMMIT, 2000, None, "", None)


async def download(desk: Desk) -> None:
    """Returns when it is done: none runs while the switch is thrown."""
    ended = asyncio.Event()
    desk.downloads.state.subscribe(lambda state: ended.set() if state.items and not state.unfinished else None)
    await desk.downloads.add(REPO, NAME)
    await ended.wait()


async def account(desk: Desk) -> None:
    test = await token_test(desk)
    if not test.is_good:
        raise QwenDeskError("Not tested", test.sentence)


async def verify(desk: Desk) -> None:
    path = paths.config_folder().parent / "ours" / REPO / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    evidence = [gather(write_model(path, model_values()), HeaderCache())]
    evidence = [
        msgspec.structs.replace(each, files=tuple(_from_repo(file) for file in each.files)) for each in evidence
    ]
    asked = await asyncio.to_thread(lambda: compare_with_hub(evidence, desk.network.hub(), load_catalog()))
    if asked.problems:
        raise QwenDeskError("Not asked", asked.problems[0])


def _from_repo(file: FileEvidence) -> FileEvidence:
    return msgspec.structs.replace(file, origin=msgspec.structs.replace(file.origin, repo=REPO, path=NAME))


async def search_tab(desk: Desk) -> None:
    service = ModelSearch(desk.network, Observed(Offers(pc=Pc(ram_bytes=2**34))), CatalogStore())
    await service.search("model", "downloads")
    if service.state.value.problem:
        raise QwenDeskError("Not searched", service.state.value.problem)


async def open_repository(desk: Desk) -> None:
    service = ModelSearch(desk.network, Observed(Offers(pc=Pc(ram_bytes=2**34))), CatalogStore())
    await service.open(REPO)
    opened = service.state.value.opened
    if opened is not None and opened.problem:
        raise QwenDeskError("Not opened", opened.problem)


async def template(desk: Desk) -> None:
    await TemplatesService(desk.network.hub, paths.config_folder() / "templates").install(REPO, "chat_template.jinja")


async def engine_pack(desk: Desk) -> None:
    address = f"{desk.network.connection.endpoint}/{REPO}/resolve/main/engine.zip"
    source = FixedAddresses(
        desk.network.without_token(), {"engine.zip": address}, lambda: desk.network.connection.is_offline
    )
    target = paths.config_folder() / "pack" / "engine.zip"
    target.unlink(missing_ok=True)
    file = RemoteFile(REPO, "engine.zip", "", len(ENGINE), hashlib.sha256(ENGINE).hexdigest(), "", None)
    await asyncio.to_thread(download_file, source, file, target, lambda _progress: None, DownloadControl())


INTENTS = {
    "search tab": search_tab,
    "open a repository": open_repository,
    "fetch a template": template,
    "fetch an engine": engine_pack,
    "search": lambda desk: asyncio.to_thread(lambda: desk.network.hub().search("model")),
    "list a repository": lambda desk: asyncio.to_thread(lambda: desk.network.hub().files(REPO)),
    "look at a file": lambda desk: asyncio.to_thread(lambda: desk.network.hub().file(REPO, NAME)),
    "read a header": lambda desk: asyncio.to_thread(lambda: remote_facts(desk.network.hub(), FILE)),
    "plan a download": lambda desk: desk.downloads.plan(REPO, NAME),
    "download": download,
    "test the token": account,
    "verify": verify,
}


@pytest.mark.parametrize("intent", INTENTS)
async def test_networked_actions_connect_only_when_online(desk, hub, connects, intent):
    hub.accounts["secret"] = "ada"
    await desk.token.save("secret")
    await INTENTS[intent](desk)
    assert connects
    desk.settings.change({"offline": True})
    connects.clear()
    with pytest.raises(QwenDeskError) as raised:
        await INTENTS[intent](desk)
    assert "offline" in raised.value.sentence
    assert connects == []


async def test_running_work_makes_no_request_after_going_offline(desk, connects):
    hub = await asyncio.to_thread(desk.network.hub)
    with hub.client() as client:
        desk.settings.change({"offline": True})
        connects.clear()
        for ask in (
            lambda: hub.files(REPO),
            lambda: hub.locate(FILE, client),
            lambda: client.get(hub.network.endpoint),
        ):
            with pytest.raises(HubError, match="Offline"):
                await asyncio.to_thread(ask)
    assert connects == []


async def test_download_stays_paused_offline_after_restart(desk, hub, connects, tmp_path):
    hub.add(REPO, NAME, bytes(100_000))
    hub.always = "stall"
    await desk.downloads.add(REPO, NAME)
    desk.settings.change({"offline": True})
    await desk.settings.close()
    await desk.downloads.close()
    connects.clear()
    again = Desk(tmp_path)
    seen = asyncio.Event()
    again.downloads.state.subscribe(lambda state: seen.set() if state.items else None)
    again.downloads.start()
    await seen.wait()
    assert [item.saved.state for item in again.downloads.state.value.items] == ["queued"]
    await again.downloads.close()
    assert connects == []


async def test_changed_endpoint_is_used_for_the_next_request(desk):
    with running_hub() as mirror:
        mirror.add("mirrored/Repo-GGUF", "a.gguf", b"x")
        desk.settings.change({"hub_endpoint": mirror.endpoint + "/"})
        found = await asyncio.to_thread(lambda: desk.network.hub().search(""))
        assert [each.repo for each in found] == ["mirrored/Repo-GGUF"]


async def test_the_proxy_is_used(desk, hub):
    with running_hub() as proxy:
        desk.settings.change({"proxy": proxy.endpoint, "hub_endpoint": "http://hub.invalid"})
        await asyncio.to_thread(lambda: desk.network.hub().search(""))
        assert any("hub.invalid" in path for path in proxy.requests("GET"))


async def test_token_is_used_for_its_endpoint_only(desk, hub):
    hub.accounts["secret"] = "ada"
    await desk.token.save(" secret\n")
    assert desk.token.state.value.place == "file"
    if sys.platform != "win32":
        assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
    test = await token_test(desk)
    assert test.is_good
    assert "ada" in test.sentence
    desk.settings.change({"hub_endpoint": "http://127.0.0.1:9"})
    await desk.token.update()
    assert desk.token.state.value.place == "nowhere"
    desk.settings.change({"hub_endpoint": ""})
    await desk.token.delete()
    assert desk.token.state.value.place == "nowhere"
    assert not (await token_test(desk)).is_good


async def test_refused_token_is_reported(desk):
    await desk.token.save("old")
    test = await token_test(desk)
    assert not test.is_good
    assert "doesn't accept this token" in test.sentence


@pytest.mark.parametrize("key", ["hub_endpoint", "proxy"])
@pytest.mark.parametrize("value", ["huggingface.co", "ftp://x", "https://", "http://a b"])
def test_invalid_address_is_refused(tmp_path, key, value):
    settings = SettingsService(tmp_path / "settings.json")
    with pytest.raises(BadOption, match="an address such as"):
        settings.change({key: value})
    assert settings.options == AppOptions()
