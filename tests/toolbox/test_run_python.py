"""The tool that runs Python asks each time, tells the model how the script ended, and never runs it unconfined."""

import asyncio
import json

import msgspec
import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox import run_python as tool_module
from qwendesk.toolbox.run_python import run_python
from qwendesk.toolbox.service import ToolService
from tests.toolbox.test_service import request_of


def script(code: str) -> ToolCall:
    return ToolCall("run_python", json.dumps({"code": code}))


def chat(*, n_ctx: int = 0) -> CallContext:
    return CallContext("a", ChatSettings(tools=("run_python",)), n_ctx=n_ctx)


async def nothing_confines() -> str:
    return "There is no sandbox."


async def test_without_a_sandbox_nothing_runs_and_nobody_is_asked() -> None:
    service = ToolService([run_python(nothing_confines)])
    record = await service.run(script("print(1)"), chat())
    assert "There is no tool run_python" in record.error
    assert service.waiting.value is None
    assert service.choices[0].obstacle == "There is no sandbox."
    assert service.definitions(chat().settings) == ()


async def test_script_without_a_sandbox_that_was_found_does_not_run() -> None:
    tool = run_python(nothing_confines)
    with pytest.raises(tool_module.ToolError, match="doesn't run"):
        await tool.run({"code": "print(1)"}, chat())


@pytest.mark.parametrize(("system", "name"), [("win32", "Windows"), ("darwin", "macOS"), ("freebsd14", "freebsd14")])
async def test_other_systems_say_that_they_cannot(system: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_module.sys, "platform", system)
    find_obstacle = run_python().find_obstacle
    assert find_obstacle is not None
    assert await find_obstacle() == f"Python runs only confined, and QwenDesk can't confine it on {name} yet."


async def test_whole_script_is_shown_each_time() -> None:
    async def found() -> str:
        return ""

    service = ToolService([msgspec.structs.replace(run_python(), find_obstacle=found)])
    for code in ("import os\n" * 500, "print('a\u202eb')"):
        task = asyncio.ensure_future(service.run(script(code), chat()))
        request = await request_of(service)
        assert request.details.replace("<U+202E>", "\u202e") == code
        assert request.choices == ("once", "refuse")
        service.decide(request, "refuse")
        assert "did not allow" in (await task).error
