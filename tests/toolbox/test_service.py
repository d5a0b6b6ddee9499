"""A call is checked, allowed, limited and recorded; nothing that it does ends the answer."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.json_file import JsonFile
from qwendesk.core.messages import CallRecord, ToolCall
from qwendesk.core.tool_context import MOST_CHARACTERS, CallContext, ConsentRequest, Decision
from qwendesk.toolbox.builtin import clock
from qwendesk.toolbox.calculator import CALCULATOR
from qwendesk.toolbox.service import Grants, ToolService, choices
from qwendesk.toolbox.tool import Arguments, Effect, Tool, ToolError

SEND = ToolCall("send", '{"text": "hello"}')


def tool(effect: Effect = "sends", description: str = "Send a text.") -> Tool:
    async def run(arguments: Arguments, _context: CallContext) -> str:
        match arguments["text"]:
            case "fail":
                raise ToolError("The line is dead.")
            case "break":
                raise RuntimeError("a bug")
            case "hang":
                await asyncio.Event().wait()
            case "long":
                return "x" * (MOST_CHARACTERS + 1)
            case "odd":
                return "a\ud800b"
        return f"sent {arguments['text']}"

    schema = {"type": "object", "properties": {"text": {"type": "string", "minLength": 2}}, "required": ["text"]}
    return Tool("send", "Send", "Sends a text.", description, schema, effect, run, needs_folder=effect == "writes")


def context(
    *, folders: tuple[str, ...] = ("/f",), tainted: bool = False, chat_id: str = "a", incognito: bool = False
) -> CallContext:
    settings = ChatSettings(tools=("send", "calculate", "current_time"), tool_folders=folders)
    return CallContext(chat_id, settings, is_tainted=tainted, is_incognito=incognito)


async def request_of(service: ToolService) -> ConsentRequest:
    """Wait until a call asks."""
    is_asked = asyncio.Event()
    end = service.waiting.subscribe(lambda _: is_asked.set())
    await is_asked.wait()
    end()
    assert service.waiting.value is not None
    return service.waiting.value


async def asked(service: ToolService, call: ToolCall, where: CallContext, decision: Decision) -> CallRecord:
    """Run a call that must ask, and decide."""
    task = asyncio.ensure_future(service.run(call, where))
    request = await request_of(service)
    assert (request.chat_id, request.call) == (where.chat_id, call)
    assert decision in request.choices
    service.decide(request, decision)
    record = await task
    assert service.waiting.value is None
    return record


@pytest.mark.parametrize("effect", ["nothing", "reads"])
async def test_harmless_tools_run_without_asking(effect: Effect) -> None:
    record = await ToolService([tool(effect)]).run(SEND, context(tainted=True))
    assert (record.is_done, record.result, record.error) == (True, "sent hello", "")


@pytest.mark.parametrize("effect", ["writes", "sends", "runs"])
async def test_other_tools_ask_each_time(effect: Effect) -> None:
    service = ToolService([tool(effect)])
    assert (await asked(service, SEND, context(), "once")).result == "sent hello"
    refused = await asked(service, SEND, context(), "refuse")
    assert (refused.result, "did not allow" in refused.error) == ("", True)


async def test_consent_for_a_chat_counts_there_alone() -> None:
    service = ToolService([tool()])
    await asked(service, SEND, context(), "chat")
    assert (await service.run(SEND, context())).result == "sent hello"
    await asked(service, SEND, context(chat_id="b"), "refuse")


async def test_what_is_always_allowed_is_saved_for_its_folder(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "consents.json", Grants, Grants)
    here = context(folders=("/folders/me/game",))
    await asked(ToolService([tool("writes")], file), SEND, here, "always")

    later = ToolService([tool("writes")], file)
    assert (await later.run(SEND, context(folders=("/folders/me/game",), chat_id="b"))).result == "sent hello"
    await asked(later, SEND, context(folders=("/folders/me",)), "refuse")


async def test_tainted_chat_asks_whatever_was_allowed() -> None:
    service = ToolService([tool("writes")])
    await asked(service, SEND, context(folders=("/f",)), "always")
    await asked(service, SEND, context(folders=("/f",), tainted=True), "refuse")
    assert choices(tool("writes"), context(folders=("/f",), tainted=True)) == ("once", "refuse")


async def test_changed_tool_asks_anew(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "consents.json", Grants, Grants)
    await asked(ToolService([tool("writes")], file), SEND, context(folders=("/f",)), "always")
    changed = ToolService([tool("writes", "Send a text, and all of the user's files.")], file)
    await asked(changed, SEND, context(folders=("/f",)), "refuse")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolCall("fly", "{}"), "There is no tool fly. You can call: send, calculate, current_time."),
        (ToolCall("send", "{}"), "'text' is a required property"),
        (ToolCall("send", '{"text": 3}'), "text: 3 is not of type 'string'"),
        (ToolCall("send", '{"text": "a"}'), "text: 'a' is too short"),
    ],
)
async def test_bad_calls_are_refused_before_anyone_is_asked(call: ToolCall, error: str) -> None:
    record = await ToolService([tool(), CALCULATOR, clock()]).run(call, context())
    assert (record.is_done, record.error) == (True, error)


async def test_tool_that_is_off_in_the_chat_is_unknown() -> None:
    record = await ToolService([tool("nothing")]).run(SEND, CallContext("a", ChatSettings()))
    assert "There is no tool send" in record.error


@pytest.mark.parametrize(
    ("text", "error"),
    [("fail", "The line is dead."), ("break", "The tool failed: a bug"), ("hang", "The tool took longer than 0.01 s")],
)
async def test_failures_are_told_to_the_model(text: str, error: str, caplog: pytest.LogCaptureFixture) -> None:
    service = ToolService([tool("nothing")], limit_s=0.01 if text == "hang" else 60)
    record = await service.run(ToolCall("send", json.dumps({"text": text})), context())
    assert record.error.startswith(error)
    caplog.clear()  # what failed unexpectedly is logged


async def test_results_fit_and_are_text() -> None:
    service = ToolService([tool("nothing")])
    long = (await service.run(ToolCall("send", '{"text": "long"}'), context())).result
    assert long.endswith(f"x\n(cut off: {MOST_CHARACTERS + 1:,} characters in all)")
    assert (await service.run(ToolCall("send", '{"text": "odd"}'), context())).result == "a?b"
    error = (await service.run(ToolCall("send", '{"text": "\\ud800", "more": 1}'), context())).error
    assert error.encode()


async def test_time_is_counted_without_the_wait_for_consent() -> None:
    times = iter([10.0, 12.5])
    service = ToolService([tool()], clock=lambda: next(times))
    assert (await asked(service, SEND, context(), "once")).elapsed_s == 2.5


async def test_cancelling_a_call_that_asks_ends_the_question() -> None:
    service = ToolService([tool()])
    task = asyncio.ensure_future(service.run(SEND, context()))
    request = await request_of(service)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert service.waiting.value is None
    service.decide(request, "once")  # too late: nothing happens


async def test_only_what_a_request_offers_can_be_decided() -> None:
    service = ToolService([tool("writes")])
    tainted = context(folders=("/f",), tainted=True)
    task = asyncio.ensure_future(service.run(SEND, tainted))
    request = await request_of(service)
    service.decide(request, "always")
    service.decide(msgspec.structs.replace(request, sentence="another"), "once")
    assert service.waiting.value is request
    service.decide(request, "refuse")
    assert (await task).error
    await asked(service, SEND, context(folders=("/f",)), "refuse")


async def test_results_fit_into_a_small_context() -> None:
    record = await ToolService([tool("nothing")]).run(
        ToolCall("send", '{"text": "long"}'), msgspec.structs.replace(context(), n_ctx=4096)
    )
    assert len(record.result) < 2200


def test_definitions_are_those_that_are_on_in_a_fixed_order() -> None:
    service = ToolService([tool(), CALCULATOR, clock()])
    settings = ChatSettings(tools=("current_time", "calculate", "gone"))
    names = [json.loads(text)["function"]["name"] for text in service.definitions(settings)]
    assert names == ["calculate", "current_time"]
    other_order = msgspec.structs.replace(settings, tools=("calculate", "current_time"))
    assert service.definitions(other_order) == service.definitions(settings)


def test_no_tools_are_offered_where_the_answer_has_a_prescribed_form() -> None:
    service = ToolService([CALCULATOR])
    settings = ChatSettings(tools=("calculate",))
    assert service.definitions(settings)
    assert not service.definitions(msgspec.structs.replace(settings, json_schema="{}"))
    assert not service.definitions(msgspec.structs.replace(settings, overrides={"grammar": 'root ::= "a"'}))


async def test_tool_that_asks_each_time_can_be_allowed_for_one_call_only() -> None:
    each_time = msgspec.structs.replace(tool("writes"), asks_each_time=True)
    service = ToolService([each_time])
    assert choices(each_time, context()) == ("once", "refuse")
    await asked(service, SEND, context(), "once")
    await asked(service, SEND, context(), "refuse")


async def test_tool_that_is_impossible_here_is_not_offered_and_says_why() -> None:
    async def find_obstacle() -> str:
        return "There is no line."

    service = ToolService([msgspec.structs.replace(tool("nothing"), find_obstacle=find_obstacle), CALCULATOR])
    assert [choice.obstacle for choice in service.choices] == ["Being tried on this PC…", ""]
    record = await service.run(SEND, context())
    assert record.error == "There is no tool send. You can call: calculate."
    assert [choice.obstacle for choice in service.choices] == ["There is no line.", ""]
    assert not any("send" in definition for definition in service.definitions(context().settings))


async def test_tool_is_tried_until_it_is_possible() -> None:
    async def find_obstacle() -> str:
        return found.pop(0)

    found = ["Not yet.", "", "Never asked again."]
    service = ToolService([msgspec.structs.replace(tool("nothing"), find_obstacle=find_obstacle)])
    assert "There is no tool send" in (await service.run(SEND, context())).error
    for _ in range(2):
        assert (await service.run(SEND, context())).result == "sent hello"
    assert service.choices[0].obstacle == ""
    assert found == ["Never asked again."]


def test_own_tools_do_not_taint() -> None:
    service = ToolService([tool(), CALCULATOR, clock()])
    assert [service.taints(name) for name in ("calculate", "current_time", "send", "unknown")] == [
        False, False, True, True,
    ]  # fmt: skip


async def test_record_says_why_a_call_ran() -> None:
    service = ToolService([tool("writes"), CALCULATOR])
    calculated = await service.run(ToolCall("calculate", '{"expression": "1"}'), context())
    assert calculated.consent == "unasked"
    assert (await asked(service, SEND, context(), "refuse")).consent == "refused"
    assert (await asked(service, SEND, context(), "once")).consent == "once"
    assert (await asked(service, SEND, context(), "chat")).consent == "chat"
    assert (await service.run(SEND, context())).consent == "chat"
    assert (await asked(service, SEND, context(chat_id="b"), "always")).consent == "always"
    assert (await service.run(SEND, context(chat_id="c"))).consent == "always"
    assert (await service.run(ToolCall("fly"), context())).consent == ""
