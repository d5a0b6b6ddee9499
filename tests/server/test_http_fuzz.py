"""Two hundred damaged requests to each endpoint: each is answered or refused, none does harm."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from qwendesk.server.http_app import DIALECTS
from tests.server.http_desk import KEY, http_desk

N_BODIES = 200
_TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_PICTURE = "data:image/png;base64,iVBORw0KGgo="
VALID: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": _PICTURE}]},
            {
                "role": "assistant",
                "reasoning_content": "Hm.",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "w", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "18"},
        ],
        "tools": [{"type": "function", "function": {"name": "w", "description": "d", "parameters": _TOOL}}],
        "tool_choice": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _TOOL}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "stop": ["a"],
        "temperature": 1,
        "logit_bias": {"1": -100},
        "seed": 1,
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 10,
        "chat_template_kwargs": {"enable_thinking": True},
    },
    "/v1/completions": {"prompt": "Once", "max_tokens": 5, "stop": "x", "stream": False, "logprobs": 1},
    "/v1/responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c", "name": "w", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "18"},
        ],
        "tools": [{"type": "function", "name": "w", "parameters": _TOOL}, {"type": "web_search"}],
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": _TOOL}},
        "max_output_tokens": 10,
        "stream": True,
    },
    "/v1/messages": {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "tool_use", "id": "c", "name": "w", "input": {"city": "Rome"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "18"}]},
        ],
        "tools": [{"name": "w", "description": "d", "input_schema": _TOOL}],
        "tool_choice": {"type": "any"},
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "stop_sequences": ["a"],
        "stream": True,
    },
}  # fmt: skip
VALID["/v1/messages/count_tokens"] = VALID["/v1/messages"]
VALID["/tokenize"] = {"content": "Hello", "parse_special": True}
VALID["/v1/embeddings"] = {"input": "Hello"}
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**64, -(2**70), 1e308, "", "x", "\x00", "\ud800", "\U0010ffff", "a" * 5000,
    [], {}, [None], [[]], [{}], {"": None}, {"type": "text"}, {"type": []}, {"role": "user"}, "auto",
    "../../etc/passwd",
    {"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}, "data:;base64,", "data:x;base64,!!",
    {"$ref": "#"}, {"type": "object", "properties": {"a": {"$ref": "#/x"}}}, [1] * 50,
)  # fmt: skip


def damaged(body: dict[str, Any], chance: random.Random) -> bytes:
    """Return a body with some values replaced, removed, added or repeated, and sometimes with some bytes changed."""
    changed = copy.deepcopy(body)
    for _ in range(chance.randint(1, 4)):
        _damage(changed, chance)
    text = json.dumps(changed, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    match chance.randrange(8):
        case 0:
            return text[: chance.randrange(len(text))]
        case 1:
            content = bytearray(text)
            for _ in range(chance.randint(1, 5)):
                content[chance.randrange(len(content))] = chance.randrange(256)
            return bytes(content)
        case 2:
            return chance.choice((b"", b"[" * 5000, b'{"messages":' * 1000, b"NaN", b"null", chance.randbytes(200)))
    return text


def _damage(value: Any, chance: random.Random) -> None:
    while True:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(value[key], dict | list) and chance.random() < 0.7:
            value = value[key]
            continue
        match chance.randrange(3):
            case 0:
                value[key] = copy.deepcopy(chance.choice(_VALUES))
            case 1:
                del value[key]
            case _ if isinstance(value, list):
                value.append(value[key])
            case _:
                value[chance.choice(("type", "content", "name", "\x00", "seed"))] = copy.deepcopy(
                    chance.choice(_VALUES)
                )
        return


@pytest.mark.parametrize("path", VALID)
async def test_damaged_bodies_are_answered_or_refused(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(path)
    statuses = set()
    async with http_desk(tmp_path) as desk:
        for number in range(N_BODIES):
            body = damaged(VALID[path], chance)
            async with desk.request("POST", path, body) as response:
                answer = await response.text()
                assert response.status in (200, 400), (number, body, answer)
                statuses.add(response.status)
                for secret in (KEY, str(tmp_path), str(Path(__file__).parents[2]), "Traceback", ".py"):
                    assert secret not in answer, (number, answer)
                if response.status != 200:
                    assert json.loads(answer)["error"]["message"], (number, body)
        expected = 400 if path == "/v1/embeddings" else 200
        assert await desk.status("POST", path, VALID[path]) == expected
    assert statuses >= ({400} if path == "/v1/embeddings" else {200, 400})
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_every_endpoint_that_takes_a_body_is_tried() -> None:
    assert set(DIALECTS) <= set(VALID)
