"""What clients write into requests beside the conversation: how to think, off values, odd addresses, unknown fields."""

import argparse
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from qwendesk.cli.ask import add_ask_options, request_of
from tests.field.grid import SERVER, Kind, Way, case
from tests.server.http_desk import KEY, HttpDesk, http_desk

_NO_FIELDS = {Way.MCP: "MCP has no such fields", Way.IMPORT: "a chat's settings are typed values, checked when read"}
THINKING_OFF = Kind(
    "Thinking goes off by every form in which clients say it", {Way.WINDOW: "the window has one switch", **_NO_FIELDS}
)
IGNORED = Kind(
    "A field that has no effect is dropped silently",
    {Way.WINDOW: "the window has no unknown fields", Way.CLI: "an unknown option is an error", **_NO_FIELDS},
)
OFF_VALUES = Kind(
    "The number that means off elsewhere is refused",
    {Way.WINDOW: "fields of the window take only what counts", Way.CLI: "its help says what counts", **_NO_FIELDS},
)
ADDRESSES = Kind(
    "A byte order mark, a slash too many or a look whether there is a server is refused",
    dict.fromkeys((Way.WINDOW, Way.CLI, Way.MCP, Way.IMPORT), "has no addresses"),
)
FORMATS = Kind(
    "The schema of an answer is refused because it stands where another server wants it",
    {Way.WINDOW: "the window has one field for it", Way.CLI: "has one option for it", **_NO_FIELDS},
)
ENCODINGS = Kind(
    "A body in a form that HTTP allows is refused, or a damaged one is called a failure of the server",
    dict.fromkeys((Way.WINDOW, Way.CLI, Way.MCP, Way.IMPORT), "gets no requests"),
)
HEADER = "X-QwenDesk-Ignored-Fields"

HI = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 50, "thinking": {"type": "enabled"}},
}

OFF: list[dict[str, Any]] = [
    {"enable_thinking": False}, {"enable_thinking": "false"}, {"enable_thinking": 0}, {"enableThinking": False},
    {"think": False}, {"think": "none"}, {"thinking": False}, {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "enabled", "budget_tokens": 0}}, {"thinking": {"enabled": False}},
    {"reasoning": {"enabled": False}}, {"reasoning": {"effort": "none"}}, {"reasoning": {"max_tokens": 0}},
    {"reasoning_effort": "off"}, {"reasoning_effort": "none"}, {"reasoning_effort": "minimal"},
    {"reasoning_effort": "NONE"}, {"reasoning_effort": False},
    {"thinking_budget": 0}, {"reasoning_budget": 0}, {"budget_tokens": 0}, {"max_reasoning_tokens": 0},
    {"thinking_token_budget": 0}, {"thinking_budget_tokens": "0"},
    {"chat_template_kwargs": {"enable_thinking": False}}, {"chat_template_kwargs": {"enable_thinking": "false"}},
    {"chat_template_kwargs": {"enable_thinking": 0}}, {"chat_template_kwargs": {"thinking": False}},
    {"chat_template_args": {"enable_thinking": False}}, {"chat_template_kwargs": {"thinking_budget": 0}},
    {"extra_body": {"enable_thinking": False}}, {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
    {"options": {"think": False}}, {"thinking_config": {"thinking_budget": 0}}, {"disable_thinking": True},
    {"output_config": {"effort": "none"}}, {"enable_reasoning": False}, {"thinking_mode": "off"},
    {"reasoning_effort": "high", "enable_thinking": False}, {"separate_reasoning": True, "think": False},
]  # fmt: skip


async def thinks(desk: HttpDesk, path: str, fields: dict[str, Any]) -> bool:
    body = BODIES[path] | fields
    assert await desk.status("POST", path, body) == 200, fields
    return desk.client.asked[-1].options.enable_thinking


@case(THINKING_OFF, *SERVER, report="llama.cpp#13160, omlx#1378", before="failed")
@pytest.mark.parametrize("path", BODIES)
async def test_thinking_goes_off_by_every_common_form(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        assert await thinks(desk, path, {})
        assert [fields for fields in OFF if await thinks(desk, path, fields)] == []
        for fields in ({"think": True}, {"reasoning_effort": "low"}, {"thinking_budget": -1}, {"thinking": None}):
            assert await thinks(desk, path, fields) or (path, fields) == ("/v1/messages", {"thinking": None})


@case(THINKING_OFF, *SERVER, report="llama.cpp#13160", before="failed")
@pytest.mark.parametrize("path", BODIES)
async def test_budgets_and_efforts_arrive_under_every_name(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        nested = {"thinking": {"type": "enabled", "budget": 70}}
        for fields in ({"thinking_budget": 70}, nested, {"options": {"budget_tokens": 70.0}}):
            assert await thinks(desk, path, fields)
            assert desk.client.asked[-1].options.thinking_budget == 70
        for fields in ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}, {"think": "low"}):
            await desk.status("POST", path, BODIES[path] | fields)
            assert desk.client.asked[-1].options.reasoning_effort == "low"
        assert await desk.status("POST", path, BODIES[path] | {"thinking_budget": -7}) == 400


@case(THINKING_OFF, Way.CLI, report="llama.cpp#13160", before="held")
async def test_thinking_goes_off_on_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    add_ask_options(parser)
    assert not request_of(parser.parse_args(["--no-think", "Hi"])).thinking
    assert request_of(parser.parse_args(["--set", "enable_thinking=off", "Hi"])).overrides == {"enable_thinking": "off"}
    assert request_of(parser.parse_args(["--think-budget", "0", "Hi"])).overrides == {"thinking_budget": "0"}


@case(IGNORED, *SERVER, report="llama.cpp#13160: a form that is not known does nothing", before="failed")
@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_field_that_has_no_effect_is_named(tmp_path: Path, path: str, stream: bool) -> None:
    unknown = {"vibe": 1, "think": "hard", "no\nsuch, thing": 1, "user": None}
    odd = {**unknown, "reasoning": {"effort": "low", "colour": "red"}, "tools": [{"type": "web_search", "name": "web"}]}
    async with http_desk(tmp_path) as desk:
        body = BODIES[path] | odd | {"stream": stream}
        async with desk.request("POST", path, body) as response:
            assert response.status == 200
            named = response.headers[HEADER].split(", ")
            await response.read()
        assert {*named} == {"think", "vibe", "no%0Asuch%2C thing", "reasoning.colour", "tools[0]"}
        assert desk.server.requests.observed.value[0].ignored == ", ".join(named)
        async with desk.request("POST", path, BODIES[path] | {"stream": stream, "model": "x"}) as response:
            assert HEADER not in response.headers


async def test_many_unknown_fields_make_no_endless_header(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        body = {"messages": [{**HI[0], "name": "Ann"}] * 300, **{f"field_{number:04d}": 1 for number in range(500)}}
        async with desk.request("POST", "/v1/chat/completions", body) as response:
            header = response.headers[HEADER]
    assert len(header) < 1100
    assert header.endswith(" more")


NO_LIMIT = 2**31 - 1


VALUES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"top_k": -1}, {"top_k": 0}), ({"top_k": NO_LIMIT}, {"top_k": 1_000_000}), ({"top_p": 1}, {"top_p": 1.0}),
    ({"top_p": 0}, {"top_p": 0.0}), ({"min_p": 0}, {"min_p": 0.0}), ({"repeat_penalty": 0}, {"repeat_penalty": 1.0}),
    ({"seed": -1}, {"seed": -1}), ({"seed": None}, {"seed": -1}), ({"max_tokens": -1}, {"max_tokens": -1}),
    ({"max_tokens": NO_LIMIT}, {"max_tokens": 4_194_304}), ({"options": {"num_predict": -2}}, {"max_tokens": -1}),
    ({"stop": None}, {"stop": ()}), ({"stop": ""}, {"stop": ()}), ({"stop": []}, {"stop": ()}), ({"n": 1}, {}),
    ({"n": None}, {}), ({"temperature": None, "presence_penalty": 0}, {"temperature": 1.0, "presence_penalty": 0.0}),
    ({"tools": None, "tool_choice": None, "logit_bias": None, "stream_options": None, "max_tokens": None}, {}),
]  # fmt: skip


@case(
    OFF_VALUES, *SERVER, report="vLLM's top_k -1, Ollama's num_predict -2, LangChain's max_tokens -1", before="failed"
)
@pytest.mark.parametrize("path", BODIES)
async def test_what_means_off_elsewhere_is_understood(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for fields, expected in VALUES:
            body = {name: value for name, value in BODIES[path].items() if name != "max_tokens"} | fields
            assert await desk.status("POST", path, body) == 200, fields
            options = desk.client.asked[-1].options
            assert {name: getattr(options, name) for name in expected} == expected, fields


@case(ADDRESSES, *SERVER, report="Kilo#10467 and its kind: requests that other servers take", before="failed")
@pytest.mark.parametrize("path", BODIES)
async def test_odd_addresses_and_bodies_are_taken(tmp_path: Path, path: str) -> None:
    content = json.dumps(BODIES[path]).encode()
    async with http_desk(tmp_path) as desk:
        for odd in (f"{path}/", f"/{path}", path.removeprefix("/v1"), f"/v1{path}", f"{path.removeprefix('/v1')}//"):
            assert await desk.status("POST", odd, content) == 200, odd
        for body in (b"\xef\xbb\xbf" + content, b"\n " + content, content.decode().encode("utf-16")):
            assert await desk.status("POST", path, body) == 200


@case(ADDRESSES, *SERVER, report="Claude Code looks with HEAD /", before="failed")
async def test_a_look_whether_there_is_a_server_is_answered(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        for path in ("/", "/v1", "/v1/", "/v1/models", "/v1/models/", "/health", "/health/", "/props"):
            for method in ("HEAD", "GET"):
                assert await desk.status(method, path) == 200, (method, path)
        assert await desk.status("HEAD", "/health/", key="") == 200
        assert await desk.status("HEAD", "/v1/models", key="") == 401
        assert await desk.status("GET", "/v1models") == 404
        assert await desk.json("GET", "/v1/models/", key=KEY) == await desk.json("GET", "/models")


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FORMS: list[dict[str, Any]] = [
    {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
    {"type": "json_schema", "name": "x", "schema": SCHEMA}, {"type": "json_object", "schema": SCHEMA},
    {"type": "json_object", "json_schema": {"schema": SCHEMA}},
]  # fmt: skip


@case(FORMATS, *SERVER, report="llama.cpp's README has two of the forms", before="failed")
@pytest.mark.parametrize("path", BODIES)
async def test_a_schema_is_found_wherever_it_stands(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for form in FORMS:
            place = {"text": {"format": form}} if path.endswith("responses") else {"response_format": form}
            place = {"output_format": form} if path.endswith("messages") else place
            assert await desk.status("POST", path, BODIES[path] | place) == 200, form
            assert json.loads(desk.client.asked[-1].options.json_schema) == SCHEMA


@case(ENCODINGS, *SERVER, report="aiohttp says 500 of a body that isn't what its header says", before="failed")
@pytest.mark.parametrize("path", BODIES)
async def test_bodies_come_in_every_form_that_http_has(tmp_path: Path, path: str) -> None:
    content = json.dumps(BODIES[path]).encode()
    async with http_desk(tmp_path) as desk:
        for encoding, sent in (
            ("gzip", gzip.compress(content)), ("GZIP", gzip.compress(content)), ("deflate", zlib.compress(content)),
            ("identity", content),
        ):  # fmt: skip
            assert await desk.status("POST", path, sent, Content_Encoding=encoding) == 200, encoding
        n_asked = len(desk.client.asked)
        for sent in (content, gzip.compress(content)[:20], gzip.compress(b"{oops")):
            async with desk.request("POST", path, sent, Content_Encoding="gzip", Connection="close") as response:
                assert response.status == 400, sent
                assert "body" in (await response.json())["error"]["message"]
        assert len(desk.client.asked) == n_asked
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{desk.port}\r\nAuthorization: Bearer {KEY}\r\n"
        pieces = b"".join(b"1;x=1\r\n%c\r\n" % byte for byte in content) + b"0\r\nX-After: 1\r\n\r\n"
        chunked = f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + pieces
        assert (await desk.raw(chunked)).startswith(b"HTTP/1.1 200")
        asks_first = f"{head}Connection: close\r\nExpect: 100-continue\r\nContent-Length: {len(content)}\r\n\r\n"
        assert b"HTTP/1.1 200" in await desk.raw(asks_first.encode() + content)
