"""The question that the Server page shows and asks: the code answers where it is pasted."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from qwendesk.server.access import masked_key
from qwendesk.server.setups.programs import Target
from qwendesk.server.try_it import QUESTION, ask, snippet
from tests.server.http_desk import KEY, http_desk

ANSWER = f"You said: {QUESTION}"


async def output_of(process: asyncio.subprocess.Process) -> str:
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode(errors="replace")
    return out.decode()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_curl_line_answers_in_a_shell(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        line = snippet("curl", desk.server.state.address, KEY)
        if sys.platform == "win32":  # cmd /c takes one line; in a window of its own it takes those that end with ^
            line = line.replace("^\n", "")
        process = await asyncio.create_subprocess_shell(
            line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert ANSWER in await output_of(process)
        (request,) = desk.client.asked
        assert not request.options.enable_thinking


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")
async def test_javascript_answers_in_node(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        code = snippet("javascript", desk.server.state.address, KEY)
        process = await asyncio.create_subprocess_exec(
            "node", "--input-type=module", "-e", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert (await output_of(process)).strip() == ANSWER


async def test_python_code_answers_with_the_package(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    async with http_desk(tmp_path) as desk:
        code = snippet("python", desk.server.state.address, KEY)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert (await output_of(process)).strip() == ANSWER


def test_python_code_is_python_and_asks_the_same() -> None:
    code = snippet("python", "http://127.0.0.1:8765", KEY)
    compile(code, "snippet", "exec")
    assert all(part in code for part in ('"http://127.0.0.1:8765/v1"', KEY, QUESTION))


async def test_the_window_asks_as_a_program_does(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        result = await ask(Target(desk.server.state.address, KEY, 4096))
        assert (result.is_answer, result.text) == (True, ANSWER)
        assert desk.server.requests.observed.value[0].program == "QwenDesk-Test"


async def test_what_goes_wrong_is_a_sentence(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        address = desk.server.state.address
        refused = await ask(Target(address, "a-wrong-key", 4096))
        assert not refused.is_answer
        assert "key is wrong" in refused.text
    gone = await ask(Target(address, KEY, 4096))
    assert not gone.is_answer
    assert gone.text.startswith("The server didn't answer")


def test_a_key_is_shown_by_its_ends_alone() -> None:
    assert masked_key("qd-0123456789abcdef") == "qd-••••••••cdef"
