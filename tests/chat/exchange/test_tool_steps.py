"""Steps in which tools were called are stored, searched, exported and imported with their answer."""

import asyncio
from pathlib import Path

import msgspec

from qwendesk.chat.exchange.values import ImportReport
from qwendesk.chat.tree_edits import new_answer, new_question
from qwendesk.core.chats import ChatSettings
from qwendesk.core.citations import citations_of
from qwendesk.core.messages import CallRecord, ToolCall, ToolStep, text_message
from tests.chat.exchange.kit import Kit

RECORD = CallRecord(
    ToolCall("calculate", '{"expression": "6 < 7"}'), is_done=True, result="```\n<b>42</b>\n```", elapsed_s=0.5
)
STEP = ToolStep((RECORD,), "I calculate.", "One moment, a kayak.", 1.5)


async def a_chat_with_a_step(kit: Kit) -> None:
    kit.chat_list.new()
    chat_id = kit.chat_list.current_id
    question = new_question("", text_message("user", "What is it?"))
    await kit.say(chat_id, question)
    kit.saver.save_settings(chat_id, ChatSettings(tools=("read_file",), tool_folders=("/folders/me",)))
    written = msgspec.structs.replace(text_message("assistant", "It is 42."), steps=(STEP,))
    await kit.say(chat_id, msgspec.structs.replace(new_answer(question.id), message=written))


async def test_steps_are_stored_and_what_was_written_there_is_found(kit: Kit) -> None:
    await a_chat_with_a_step(kit)
    stored = (await kit.tree()).path()[-1].message
    assert (stored.text, stored.steps) == ("It is 42.", (STEP,))
    assert len(await kit.chat_list.search("kayak")) == 1
    assert len(await kit.chat_list.search("42")) == 1


async def test_steps_without_a_text_after_them_are_stored(kit: Kit) -> None:
    chat_id = await kit.chat("What is it?", "1")
    question = (await kit.tree()).path()[0]
    running = msgspec.structs.replace(STEP, calls=(CallRecord(RECORD.call),))
    empty = msgspec.structs.replace(text_message("assistant", ""), parts=(), steps=(running,))
    await kit.say(chat_id, msgspec.structs.replace(new_answer(question.id), message=empty))
    stored = (await kit.tree()).path()[-1].message
    assert (stored.text, stored.steps) == ("", (running,))


async def test_json_export_imports_steps(kit: Kit, other: Kit, tmp_path: Path) -> None:
    await a_chat_with_a_step(kit)
    await kit.exchange.export(tmp_path / "all.json", "json")
    assert await other.exchange.import_from(tmp_path / "all.json") == ImportReport(chats=1, messages=2)
    assert (await other.tree()).path()[-1].message.steps == (STEP,)
    (row,) = other.chat_list.chats.summaries.values()
    assert row.settings == ChatSettings(is_imported=True), "a file from outside gives no access to folders"


async def test_markdown_and_web_page_show_calls_before_the_answer(kit: Kit, tmp_path: Path) -> None:
    await a_chat_with_a_step(kit)
    for kind in ("markdown", "markdown_thoughts", "html"):
        await kit.exchange.export(tmp_path / kind, kind)
    plain, full, page = [
        await asyncio.to_thread((tmp_path / kind).read_text) for kind in ("markdown", "markdown_thoughts", "html")
    ]
    call = 'Tool calculate {"expression": "6 < 7"}:\n````\n```\n<b>42</b>\n```\n````'
    assert f"One moment, a kayak.\n\n{call}\n\nIt is 42." in plain
    assert "> Thought\n>\n> I calculate.\n\nOne moment" in full
    assert "I calculate." not in plain
    assert "<pre>```\n&lt;b&gt;42&lt;/b&gt;\n```</pre>" in page
    assert page.index("I calculate.") < page.index("a kayak") < page.index("calculate {") < page.index("It is 42.")


async def test_exports_say_what_the_numbers_of_an_answer_stand_for(kit: Kit, other: Kit, tmp_path: Path) -> None:
    kit.chat_list.new()
    chat_id = kit.chat_list.current_id
    question = new_question("", text_message("user", "What about [2]?"))
    await kit.say(chat_id, question)
    found = "[1] a<b>.txt, lines 3-4\n    kayak\n    raft\n\n[2] book.pdf, page 7, lines 1-1\n    canoe"
    record = CallRecord(ToolCall("search_files", '{"query": "kayak"}'), is_done=True, result=found)
    answer = text_message("assistant", "It is red [1]. Not [5].")
    written = msgspec.structs.replace(answer, steps=(ToolStep((record,)),))
    await kit.say(chat_id, msgspec.structs.replace(new_answer(question.id), message=written))
    for kind in ("markdown", "html", "json"):
        await kit.exchange.export(tmp_path / kind, kind)
    text, page = [await asyncio.to_thread((tmp_path / kind).read_text) for kind in ("markdown", "html")]
    assert text.endswith("It is red [1]. Not [5].\n\n- \\[1] a<b>.txt, lines 3-4\n")
    assert "<ul><li>[1] a&lt;b&gt;.txt, lines 3-4</li></ul>" in page

    await other.exchange.import_from(tmp_path / "json")
    places = citations_of((await other.tree()).path()[-1].message.steps)
    assert (places[1].found, places[2].at) == (("kayak", "raft"), 7), "an imported answer opens what was found"
