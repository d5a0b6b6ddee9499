"""DuckDuckGo, as the library ddgs really asks it and reads its pages, from a made-up server on this PC."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qs

import pytest
import pytest_asyncio
from ddgs.engines.duckduckgo import Duckduckgo

from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web import web_search
from qwendesk.toolbox.web.web_search import MOST_RESULTS, DuckDuckGo, FoundPage
from tests.toolbox.web.made_up_web import MadeUpWeb, answer, running_web

QUERY = "why do boats float"


def result(number: int, address: str = "") -> str:
    """One result as on DuckDuckGo's page without scripts."""
    address = address or f"https://boats.example/{number}"
    return f"""
        <div class="result results_links results_links_deep web-result">
          <div class="links_main links_deep result__body">
            <h2 class="result__title">
              <a rel="nofollow" class="result__a" href="{address}">Boats &amp; <b>{number}</b></a>
            </h2>
            <div class="result__extras"><div class="result__extras__url">
              <a class="result__url" href="{address}"> boats.example/{number} </a></div></div>
            <a class="result__snippet" href="{address}">They <b>displace</b> water.</a>
            <div class="clear"></div>
          </div>
        </div>"""


def page(*results: str) -> bytes:
    body = f'<html><head><title>{QUERY}</title></head><body><div id="links" class="results">{"".join(results)}</div>'
    return answer(f"{body}</body></html>".encode())


@pytest_asyncio.fixture
async def web(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MadeUpWeb]:
    """The server in place of DuckDuckGo's, and no proxy of this PC."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "DDGS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with running_web() as web:
        monkeypatch.setattr(Duckduckgo, "search_url", f"http://127.0.0.1:{web.port}/html/")
        yield web


async def searched(web: MadeUpWeb, found: bytes) -> tuple[Sequence[FoundPage], dict[str, list[str]]]:
    """Search, and return what was found and the form that was sent."""
    forms: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, headers = web.requests[-1]
        forms.append(await reader.readexactly(int(headers["content-length"])))
        writer.write(found)

    web.answers[f"127.0.0.1:{web.port}/html/"] = serve
    pages = await DuckDuckGo("").search(QUERY)
    [form] = forms
    return pages, parse_qs(form.decode())


async def test_results_are_read_without_advertisements(web: MadeUpWeb) -> None:
    advertisement = "https://duckduckgo.com/y.js?ad_domain=boats.example"
    pages, form = await searched(web, page(result(1), result(2, advertisement), result(3)))
    assert pages == [
        FoundPage("Boats & 1", "https://boats.example/1", "They displace water."),
        FoundPage("Boats & 3", "https://boats.example/3", "They displace water."),
    ]
    assert form == {"q": [QUERY], "l": ["wt-wt"]}
    assert len(web.requests) == 1, "no other search engine is asked"


async def test_results_are_limited(web: MadeUpWeb) -> None:
    pages, _ = await searched(web, page(*map(result, range(30))))
    assert len(pages) == MOST_RESULTS


@pytest.mark.parametrize(
    "found",
    [
        page(),
        answer(b"<html><form id='challenge-form'>Select all squares with a duck</form></html>", status=202),
        answer(b"", status=403),
        answer(b"<<<>"),
        answer(b"\xff\xfe\x00", "application/octet-stream"),
    ],
)
async def test_page_without_results_says_what_it_may_mean(web: MadeUpWeb, found: bytes) -> None:
    with pytest.raises(ToolError, match="DuckDuckGo gave no results"):
        await searched(web, found)


async def test_silence_is_said(web: MadeUpWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass

    monkeypatch.setattr(web_search, "_LIBRARY_LIMIT_S", 1)
    web.answers[f"127.0.0.1:{web.port}/html/"] = hang
    with pytest.raises(ToolError, match="did not answer in time"):
        await DuckDuckGo("").search(QUERY)


async def test_no_connection_is_said(web: MadeUpWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_web() as gone:
        monkeypatch.setattr(Duckduckgo, "search_url", f"http://127.0.0.1:{gone.port}/html/")
    with pytest.raises(ToolError, match="No connection to DuckDuckGo"):
        await DuckDuckGo("").search(QUERY)
