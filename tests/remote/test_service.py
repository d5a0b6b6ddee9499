"""The list of servers: added, kept, searched, trusted, removed, and never used against the user's will."""

import asyncio
import ssl
from fnmatch import fnmatch

import pytest
import pytest_asyncio

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.hub.access_tokens import known_hosts, load_token
from qwendesk.remote import finding
from qwendesk.remote.routed_client import RoutedClient
from qwendesk.remote.servers import ServerList, servers_file
from qwendesk.remote.service import RemoteService
from qwendesk.server.certificates import own_certificate
from qwendesk.settings.deletion import KINDS
from tests.fakes.engine import FakeEngineClient
from tests.remote import made_up_server
from tests.remote.made_up_server import LM_STUDIO_MISSING

FILE = LoadOptions(model="/models/a.gguf")


class Settings:
    app = Observed(AppOptions())
    own = Observed[tuple[str, ...]](())


@pytest.fixture
def file(tmp_path):
    return ServerList(tmp_path / "servers.json")


@pytest_asyncio.fixture
async def service(file):
    service = RemoteService(Settings.app, Settings.own, file)
    yield service
    Settings.app.set(AppOptions())
    Settings.own.set(())
    await service.close()


async def test_an_added_server_is_kept_with_its_models_and_its_key_elsewhere(remote, service, file, tmp_path):
    server = await remote.serve(made_up_server.lm_studio(), key="secret", missing=LM_STUDIO_MISSING)
    assert await service.add(f"127.0.0.1:{server.port}/v1", "secret", "Studio")
    (listed,) = service.state.value.servers
    assert (listed.server.kind, listed.server.title) == ("lmstudio", "Studio")
    assert [model.name for model in listed.models] == ["qwen/qwen3.5-9b", "mistral-7b"]
    assert RemoteService(Observed(AppOptions()), servers=file).state.value.servers[0].server == listed.server
    assert load_token(server.address) == "secret"
    assert "secret" not in (tmp_path / "servers.json").read_text(encoding="utf-8")
    assert server.address in known_hosts(), "so that Delete everything finds its key"
    await service.remove(server.address)
    assert not service.state.value.servers
    assert not load_token(server.address)
    assert not file.read()


async def test_a_wrong_address_or_key_is_said_and_nothing_is_added(remote, service):
    server = await remote.serve(made_up_server.llama_server(), key="secret")
    assert not await service.add(server.address, "wrong")
    assert "key" in service.state.value.problem
    assert not await service.add("not an address")
    assert "address" in service.state.value.problem
    assert not service.state.value.servers
    assert not load_token(server.address)


async def test_a_server_that_went_away_says_so_when_it_is_asked_again(remote, service):
    server = await remote.serve(made_up_server.ollama())
    await service.add(server.address)
    await server.close()
    await service.refresh_all()
    (listed,) = service.state.value.servers
    assert "Start the server" in listed.problem
    assert not listed.models


async def test_a_server_that_is_renamed_while_it_is_asked_keeps_its_new_name(remote, service):
    replies = made_up_server.ollama()
    server = await remote.serve(replies)
    await service.add(server.address)
    renaming = []

    def rename_and_answer(_asked):
        renaming.append(asyncio.ensure_future(service.rename(server.address, "The PC upstairs")))
        return version

    version, server.replies["/api/version"] = server.replies["/api/version"], rename_and_answer
    await service.refresh(server.address)
    await asyncio.gather(*renaming)
    (listed,) = service.state.value.servers
    assert (listed.server.name, listed.is_asking) == ("The PC upstairs", False)


async def test_offline_reaches_the_house_and_nothing_beyond(remote, service):
    Settings.app.set(AppOptions(offline=True))
    server = await remote.serve(made_up_server.ollama())
    assert await service.add(server.address)
    assert not await service.add("https://api.example.com", "key")
    assert "offline" in service.state.value.problem


@pytest.mark.parametrize("address", ["localhost:8765", "https://192.168.1.5:8766", "https://localhost:8766"])
async def test_the_app_does_not_use_its_own_server(service, address):
    Settings.own.set(("http://127.0.0.1:8765", "https://192.168.1.5:8766"))
    assert not await service.add(address)
    assert "own models" in service.state.value.problem


async def test_servers_on_this_pc_are_found_when_asked(remote, service, monkeypatch):
    servers = [
        await remote.serve(made_up_server.ollama()),
        await remote.serve({}),
        await remote.serve(made_up_server.vllm()),
    ]
    locked = await remote.serve(made_up_server.llama_server(), key="secret")
    ports = [server.port for server in (*servers, locked)]
    monkeypatch.setattr(finding.find_on_this_pc, "__defaults__", (ports,))
    has_ended = asyncio.Event()
    service.state.subscribe_field(lambda state: state.has_searched, lambda _where: has_ended.set())
    assert not service.state.value.found
    service.search("pc")
    has_ended.clear()
    await has_ended.wait()
    found = {server.address: server.kind for server in service.state.value.found}
    assert found == {servers[0].address: "ollama", servers[2].address: "vllm", locked.address: "other"}


async def test_a_search_that_fails_has_ended(service, monkeypatch):
    async def fail(_found):
        raise ExceptionGroup("of its tasks", [ValueError("an odd network")])

    monkeypatch.setattr("qwendesk.remote.finding.find_in_network", fail)
    ended = asyncio.Event()
    service.state.subscribe(lambda state: ended.set() if state.has_searched == "network" else None)
    service.search("network")
    await ended.wait()
    assert not service.state.value.searching


async def test_a_search_can_be_stopped(service):
    service.search("network")
    assert service.state.value.searching == "network"
    service.stop_search()
    assert not service.state.value.searching


async def test_a_model_on_a_server_takes_the_place_of_a_file_and_back(remote):
    local = FakeEngineClient()
    served = await remote.serve(made_up_server.llama_server())
    service = RemoteService(Observed(AppOptions()))
    engine = EngineService(
        RoutedClient(local, service.client, AnswerMeter()), decide=lambda options, _devices: decided_options(options)
    )
    phases = []
    engine.subscribe(lambda state: phases.append(state.phase))
    await engine.load(FILE)
    assert local.is_loaded()
    report = await engine.load(LoadOptions(model=ServedModel(served.address, "Qwen3.8-27B").text))
    assert isinstance(report, LoadReport)
    assert not local.is_loaded(), "the worker's memory is free"
    assert phases[-1] is Phase.READY
    assert isinstance(await engine.probe(), Devices)
    assert engine.state.report == report, "listing this PC's devices changes nothing of the server's model"
    assert engine.state.devices
    back = await engine.load(FILE)
    assert back.served_by is None
    await engine.load(LoadOptions(model=ServedModel(served.address, "Qwen3.8-27B").text))
    await engine.eject()
    assert engine.state.report is None
    assert engine.state.phase is Phase.OFF
    await engine.close()
    assert local.closed


async def test_a_load_from_a_server_that_hangs_can_be_stopped(remote):
    is_asked, may_go = asyncio.Event(), asyncio.Event()

    async def hang(_reader, writer):
        is_asked.set()
        await may_go.wait()
        writer.close()

    hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{hanging.sockets[0].getsockname()[1]}"
    loading = asyncio.ensure_future(remote.engine.load(LoadOptions(model=ServedModel(address, "m").text)))
    await is_asked.wait()
    await remote.engine.cancel_load()
    assert (await loading).kind == "cancelled"
    may_go.set()
    hanging.close()
    await hanging.wait_closed()


async def test_a_certificate_is_shown_and_trusted_for_its_address_alone(remote, service, tmp_path):
    server = await _serve_tls(remote, tmp_path)
    assert not await service.add(server.address)
    untrusted = service.state.value.untrusted
    assert untrusted is not None
    assert len(untrusted.fingerprint.split(":")) == 32
    assert not service.state.value.servers
    assert not server.asked, "nothing is sent before the user has decided"
    assert await service.trust()
    assert service.state.value.servers[0].server.certificate.startswith("-----BEGIN CERTIFICATE")
    await service.refresh(server.address)
    assert service.state.value.servers[0].models


async def test_another_certificate_at_a_trusted_address_is_refused(remote, service, tmp_path):
    server = await _serve_tls(remote, tmp_path)
    address, port = server.address, server.port
    await service.add(address)
    assert await service.trust()
    await server.close()
    (tmp_path / "other").mkdir()
    other = await _serve_tls(remote, tmp_path / "other", port)
    await service.refresh(address)
    assert "isn't trusted" in service.state.value.servers[0].problem
    assert not other.asked


async def _serve_tls(remote, folder, port=0):
    certificate = await asyncio.to_thread(own_certificate, folder, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key_file)
    server = await made_up_server.MadeUpServer(made_up_server.llama_server()).start(port, context)
    remote.servers.append(server)
    return server


async def test_the_list_is_among_what_delete_everything_deletes():
    assert any(fnmatch(servers_file().name, pattern) for pattern in KINDS["settings"])


async def test_a_name_that_nobody_knows_is_said_without_error_numbers(service):
    assert not await service.add("http://nowhere.invalid:8080")
    assert "No server is known by the name in nowhere.invalid:8080" in service.state.value.problem
    assert "Errno" not in service.state.value.problem
