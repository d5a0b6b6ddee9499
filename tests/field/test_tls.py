"""Certificates that are wrong, have expired, aren't valid yet, or are renewed."""

import re
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
import pytest_asyncio

from qwendesk.core.app_options import AppOptions
from qwendesk.core.certificate_errors import certificate_problem
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub
from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.service import McpService
from qwendesk.remote.servers import ServerList
from qwendesk.remote.service import RemoteService
from qwendesk.server.certificates import Certificate, own_certificate
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerOptions, ServerService
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.fetcher import fetch
from tests.certificates import make_certificate, tls_server
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service
from tests.mcp.servers import added, problem
from tests.remote import made_up_server
from tests.remote.conftest import remote
from tests.remote.made_up_server import MadeUpServer
from tests.toolbox.web.made_up_web import PUBLIC, running_web

__all__ = ["no_keyring", "remote", "service"]

OF_OTHERS = Kind(
    "What is wrong with a server's certificate isn't said, and the advice can't help",
    {
        **dict.fromkeys(SERVER, "there it is the client that looks at our certificate"),
        Way.IMPORT: "an import reads a file",
    },
)
OUR_OWN = Kind(
    "Our server shows a certificate that has expired or that no client takes, until somebody restarts it",
    {
        Way.MCP: "our server is no MCP server",
        Way.IMPORT: "an import reads a file",
    },
)
FOUND = "found with certificates of our own, November 2026"
WRONG = {
    "expired": ({"begins_in_days": -300, "ends_in_days": -1}, "has expired"),
    "not yet": ({"begins_in_days": 2}, "isn't valid yet"),
    "of another": ({"address": "192.0.2.7"}, "belongs to another address"),
}
each_wrong = pytest.mark.parametrize("wrong", WRONG)


@pytest_asyncio.fixture
async def engines(tmp_path: Path) -> AsyncIterator[RemoteService]:
    servers = ServerList(tmp_path / "servers.json")
    made = RemoteService(Observed(AppOptions()), Observed[tuple[str, ...]](()), servers)
    yield made
    await made.close()


def trusting(certificate: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate.file)


def wrong_certificate(wrong: str, folder: Path) -> tuple[Certificate, str]:
    changes, words = WRONG[wrong]
    return make_certificate(folder / "server", **changes), words  # type: ignore[arg-type]


@case(OF_OTHERS, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("wrong", ["expired", "not yet"])
async def test_a_remote_engine(remote: Any, engines: RemoteService, tmp_path: Path, wrong: str) -> None:
    """The user trusts it by its fingerprint, and would be asked to do so again and again."""
    certificate, words = wrong_certificate(wrong, tmp_path)
    server = await MadeUpServer(made_up_server.llama_server()).start(0, certificate.context())
    remote.servers.append(server)
    assert not await engines.add(server.address)
    assert engines.state.value.untrusted is not None

    assert not await engines.trust()

    assert words in engines.state.value.problem
    assert engines.state.value.untrusted is None
    assert not server.asked


@case(OF_OTHERS, Way.WINDOW, report=FOUND, before="failed")
async def test_a_renewed_certificate_of_a_remote_engine(remote: Any, engines: RemoteService, tmp_path: Path) -> None:
    server = await MadeUpServer(made_up_server.llama_server()).start(0, make_certificate(tmp_path).context())
    remote.servers.append(server)
    address, port = server.address, server.port
    await engines.add(address)
    assert await engines.trust()
    await server.close()
    renewed = await MadeUpServer(made_up_server.llama_server()).start(port, make_certificate(tmp_path).context())
    remote.servers.append(renewed)

    await engines.refresh(address)
    assert "the certificate was renewed, add it again" in engines.state.value.servers[0].problem
    assert not renewed.asked, "another server may be at the address"

    assert not await engines.add(address)
    assert await engines.trust()
    assert [each.problem for each in engines.state.value.servers] == [""]


@case(OF_OTHERS, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
@each_wrong
def test_a_mirror_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    certificate, words = wrong_certificate(wrong, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    with tls_server(certificate) as port, pytest.raises(HubError, match=words):
        Hub(Network(f"https://127.0.0.1:{port}")).files("owner/repo")


@case(OF_OTHERS, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
@each_wrong
async def test_a_page_that_a_tool_reads(tmp_path: Path, wrong: str) -> None:
    changes, words = WRONG[wrong]
    certificate = make_certificate(tmp_path, **{"address": PUBLIC} | changes)  # type: ignore[arg-type]
    async with running_web(certificate.context()) as web:
        with pytest.raises(ToolError, match=words):
            await fetch(httpx2.URL(f"https://{PUBLIC}/"), web, ssl_context=trusting(certificate))


@case(OF_OTHERS, Way.WINDOW, Way.CLI, Way.MCP, report="winerror.h of Windows and SecBase.h of macOS", before="failed")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0x800B0101, "has expired"), (-67818, "has expired"), (-67819, "isn't valid yet"),
        (0x800B010F, "belongs to another address"), (-67602, "belongs to another address"),
    ],
)  # fmt: skip
def test_numbers_of_windows_and_macos(code: int, words: str) -> None:
    wrong = ssl.SSLCertVerificationError("certificate chain policy error")
    wrong.verify_code = code
    assert words in certificate_problem("example.com", wrong)


@case(OF_OTHERS, Way.MCP, report=FOUND, before="failed")
async def test_an_mcp_server(service: McpService, tmp_path: Path) -> None:
    with tls_server(make_certificate(tmp_path)) as port:
        address = f"https://127.0.0.1:{port}/mcp"
        await added(service, NewServer(ServerConfig(new_id(), "Other", address=address)))
    # Windows and macOS are asked about certificates there, and have words of their own.
    wrong = "self-signed certificate" if sys.platform == "linux" else ".{5,}"
    assert re.fullmatch(
        f"The certificate of {re.escape(address)} isn't accepted: {wrong}. Nothing was sent there.", problem(service)
    )


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ServerService]:
    engine = EngineService(FakeEngineClient(), decide=decide_by_default)

    async def default() -> LoadOptions:
        return LoadOptions(model="/models/demo.gguf")

    made = ServerService(FakeEngineClient(), ServedModels(engine, default))
    yield made
    await made.close()
    await engine.close()


async def status_with(certificate: Certificate, address: str) -> int:
    """Return the status of a client that trusts this certificate alone; 0 if it refuses what it is shown."""
    connector = aiohttp.TCPConnector(ssl=trusting(certificate))
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            async with session.get(f"{address}/health") as answer:
                return answer.status
        except aiohttp.ClientConnectorCertificateError:
            return 0


@case(OUR_OWN, Way.WINDOW, Way.CLI, *SERVER, report=FOUND, before="failed")
async def test_a_certificate_that_is_renewed_while_the_server_runs(server: ServerService, tmp_path: Path) -> None:
    shown = make_certificate(tmp_path / "shown")
    old = Certificate(*(shutil.copy(each, tmp_path) for each in (shown.file, shown.key_file)))
    address = (await server.start(ServerOptions(port=0, certificate=shown))).address
    assert [await status_with(each, address) for each in (old, make_certificate(tmp_path / "new"))] == [200, 0]

    make_certificate(shown.file.parent)

    assert [await status_with(each, address) for each in (old, shown)] == [0, 200]


@case(OUR_OWN, Way.WINDOW, Way.CLI, *SERVER, report=FOUND, before="failed")
@pytest.mark.parametrize("half", ["a key that doesn't fit", "no certificate", "half a certificate"])
async def test_half_a_renewal_stops_no_server(server: ServerService, tmp_path: Path, half: str) -> None:
    shown = make_certificate(tmp_path / "shown")
    old = Certificate(*(shutil.copy(each, tmp_path) for each in (shown.file, shown.key_file)))
    address = (await server.start(ServerOptions(port=0, certificate=shown))).address

    if half == "no certificate":
        shown.file.unlink()
    elif half == "half a certificate":
        shown.file.write_bytes(shown.file.read_bytes()[:200])
    else:
        shutil.copy(make_certificate(tmp_path / "new").key_file, shown.key_file)
    assert await status_with(old, address) == 200

    make_certificate(shown.file.parent)
    assert await status_with(shown, address) == 200


@case(OUR_OWN, Way.WINDOW, Way.CLI, *SERVER, report=FOUND, before="failed")
def test_our_own_is_renewed_a_month_before_it_ends(tmp_path: Path) -> None:
    """A server that is started may run for weeks."""
    soon = make_certificate(tmp_path, ends_in_days=29).fingerprint()
    assert own_certificate(tmp_path, "0.0.0.0").fingerprint() != soon
    later = make_certificate(tmp_path, ends_in_days=31).fingerprint()
    assert own_certificate(tmp_path, "0.0.0.0").fingerprint() == later


@case(OUR_OWN, Way.WINDOW, Way.CLI, *SERVER, report=FOUND, before="failed")
def test_our_own_that_isnt_valid_yet_is_made_anew(tmp_path: Path) -> None:
    """It was made while the clock was ahead."""
    tomorrow = make_certificate(tmp_path, begins_in_days=1).fingerprint()
    assert own_certificate(tmp_path, "0.0.0.0").fingerprint() != tomorrow


@case(OUR_OWN, Way.WINDOW, Way.CLI, *SERVER, report=FOUND, before="failed")
def test_our_own_is_made_anew_where_the_app_was_killed_between_key_and_certificate(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    shutil.copy(make_certificate(tmp_path / "new").key_file, made.key_file)
    own_certificate(tmp_path, "0.0.0.0").context()
