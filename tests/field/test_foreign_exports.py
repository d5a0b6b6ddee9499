"""Chats taken along from ChatGPT since August 2026, from LM Studio and Open WebUI; what can't be taken is counted."""

import base64
import contextlib
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from qwendesk.chat.exchange.values import BadExchange, ImportReport, LeftOut
from qwendesk.core.messages import Message
from tests.chat.exchange.kit import PICTURE, SHA, Kit, gpt_chat, gpt_node
from tests.field.grid import SERVER, Kind, Way, case

LOST = Kind(
    "Chats of another program can't be taken along, or parts of them vanish without a word",
    dict.fromkeys(
        (Way.WINDOW, Way.CLI, *SERVER, Way.MCP),
        "chats of other programs come in by an import alone, which the window starts",
    ),
)


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    kit = Kit(tmp_path / "pc")
    await kit.start()
    yield kit
    await kit.chat_list.close()


def zipped(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


async def messages(kit: Kit) -> list[Message]:
    """The shown messages of the only chat."""
    return [node.message for node in (await kit.tree()).path()]


def talk(title: str, **more: Any) -> dict[str, Any]:
    asked, answered = gpt_node("q", None, "user", f"About {title}?"), gpt_node("a", "q", "assistant", "Yes.")
    return gpt_chat(asked, answered, title=title, current_node="a", conversation_id=title) | more


@case(LOST, Way.IMPORT, report="LibreChat#15229: over 50 JSON files in the ZIP of August 2026", before="failed")
async def test_chatgpt_chats_in_several_files(kit: Kit, tmp_path: Path) -> None:
    shards = {f"conversations-{n:03}.json": [talk(f"Chat {n}.{i}") for i in range(3)] for n in range(12)}
    others = {"export_manifest.json": {"files": []}, "user.json": {"id": "u"}, "conversations.json.index": b"\0"}
    path = zipped(tmp_path / "export.zip", **{"chat.html": b"<html>"}, **shards, **others)

    report = await kit.exchange.import_from(path)

    assert report == ImportReport(chats=36, messages=72)
    assert "Chat 11.2" in kit.titles


@case(LOST, Way.IMPORT, report="chatgpt-data-viewer#1: the files once unpacked", before="held")
async def test_one_of_the_files_is_an_export_too(kit: Kit) -> None:
    report = await kit.import_bytes(json.dumps([talk("One")]).encode(), "conversations-007.json")

    assert report == ImportReport(chats=1, messages=2)


@case(
    LOST, Way.IMPORT, report="nexus-ai-chat-importer#45: an export once more has the older chats again", before="failed"
)
async def test_a_later_export_adds_only_what_is_new(kit: Kit) -> None:
    await kit.import_value([talk("Old", update_time=5.0), talk("Continued", update_time=5.0)])

    report = await kit.import_value(
        [talk("Old", update_time=5.0), talk("Continued", update_time=9.0), talk("New", update_time=9.0)]
    )

    assert report == ImportReport(chats=2, messages=4, already_here=1)


@case(LOST, Way.IMPORT, report="LibreChat#15229, #15388: no metadata, the model at the chat", before="failed")
async def test_messages_without_metadata_get_the_model_of_the_chat(kit: Kit) -> None:
    context = {"content_type": "user_editable_context", "user_profile": "I like boats."}
    chat = talk("New", default_model_slug="gpt-5-thinking")
    chat["mapping"]["c"] = gpt_node("c", None, "user", content=context)
    for node in chat["mapping"].values():
        del node["message"]["metadata"]
        node.pop("children")

    assert (await kit.import_value([chat])).left_out == LeftOut()

    path = (await kit.tree()).path()
    assert [node.message.text for node in path] == ["About New?", "Yes."]
    assert path[1].model == "gpt-5-thinking"


@case(LOST, Way.IMPORT, report="ChatGPT's exports since 2023", before="held")
async def test_a_chatgpt_export_keeps_branches_and_leaves_out_tools(kit: Kit) -> None:
    asked = gpt_node("1", None, "user", "Which bird wades?")
    hidden = gpt_node("0", "1", "system", "You are ChatGPT.", metadata={"is_visually_hidden_from_conversation": True})
    tool = gpt_node("2", "0", "tool", "a page with orders")
    first, second = gpt_node("3", "2", "assistant", "A heron."), gpt_node("4", "2", "assistant", "A stork.")
    chat = gpt_chat(asked, hidden, tool, first, second, current_node="4", title="Birds")
    odd = gpt_chat(gpt_node("5", "6", "user", "No root"), create_time="yesterday", update_time="soon")

    report = await kit.import_bytes(json.dumps([chat, odd, "no chat", {}]).encode())

    assert (report.chats, report.unreadable) == (2, 2)
    summaries = kit.chat_list.chats.summaries
    assert kit.titles == {"Birds", "From outside"}
    (birds,) = [each for each in summaries.values() if each.title == "Birds"]
    tree = await kit.chat_list.tree(birds.id)
    assert [each.message.text for each in tree.path()] == ["Which bird wades?", "A stork."]
    assert sorted(each.message.text for each in tree.nodes.values()) == ["A heron.", "A stork.", "Which bird wades?"]
    assert all(each.settings.is_imported for each in summaries.values()), "which taints"


def voice(direction: str, text: str) -> list[dict[str, Any]]:
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"}
    user = {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": sound}
    spoken = {"content_type": "audio_transcription", "text": text, "direction": direction}
    return [spoken, user if direction == "in" else sound]


@case(LOST, Way.IMPORT, report="synix#6, chatgpt-exporter#298, nexus-ai-chat-importer#10", before="failed")
async def test_voice_chats_keep_what_was_said(kit: Kit) -> None:
    asked = {"content_type": "multimodal_text", "parts": voice("in", "Which bird wades?")}
    answered = {"content_type": "multimodal_text", "parts": voice("out", "A heron does.")}
    silent = {"content_type": "multimodal_text", "parts": voice("in", "")}
    chat = gpt_chat(
        gpt_node("q", None, "user", content=asked),
        gpt_node("a", "q", "assistant", content=answered),
        gpt_node("s", "a", "user", content=silent),
        current_node="s",
    )

    report = await kit.import_value([chat])

    heard = [message.text for message in await messages(kit)]
    assert heard[:2] == ["Which bird wades?", "A heron does."]
    assert heard[2].startswith("[A recording was here.")
    assert report.left_out == LeftOut(recordings=3)
    assert report.sentence.endswith("Not imported: 3 recordings.")


@case(LOST, Way.IMPORT, report="ChatGPT's exports: code that ran, and what came of it", before="failed")
async def test_code_that_ran_is_part_of_the_answer(kit: Kit) -> None:
    def content(kind: str, text: str) -> dict[str, str]:
        return {"content_type": kind, "text": text}

    thought = {"content_type": "thoughts", "thoughts": [{"content": "Let me count."}]}
    chat = gpt_chat(
        gpt_node("q", None, "user", "How many primes are below 100?"),
        gpt_node("t", "q", "assistant", content=thought),
        gpt_node("c", "t", "assistant", content=content("code", "print(25)"), recipient="python"),
        gpt_node(
            "o", "c", "tool", content=content("execution_output", "25"), author={"role": "tool", "name": "python"}
        ),
        gpt_node("w", "o", "assistant", content=content("code", 'search("primes")'), recipient="web.run"),
        gpt_node("r", "w", "tool", "a page with orders"),
        gpt_node("a", "r", "assistant", "25.\ue200cite\ue202turn0search0\ue201"),
        current_node="a",
    )

    report = await kit.import_value([chat])

    question, answer = await messages(kit)
    assert (question.text, answer.text) == ("How many primes are below 100?", "25.")
    (step,) = answer.steps
    (record,) = step.calls
    assert (step.reasoning, record.call.name, json.loads(record.call.arguments_json)) == (
        "Let me count.", "python", {"code": "print(25)"}
    )  # fmt: skip
    assert (record.is_done, record.result) == (True, "25")
    assert report.left_out == LeftOut(tool_messages=2)
    assert "orders" not in str(answer)


@case(LOST, Way.IMPORT, report="nexus-ai-chat-importer#62: attachments are .dat files", before="held")
async def test_pictures_named_dat_and_other_files(kit: Kit, tmp_path: Path) -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-0HDU"}
    attachments = [
        {"id": "file-0HDU", "name": "cat.png", "mime_type": "image/png"},
        {"id": "file-9", "name": "report.pdf", "mime_type": "application/pdf"},
    ]
    content = {"content_type": "multimodal_text", "parts": [pointer, "What is it?"]}
    chat = gpt_chat(gpt_node("q", None, "user", content=content, metadata={"attachments": attachments}))
    path = zipped(
        tmp_path / "export.zip",
        **{"conversations-000.json": [chat], "file-0HDU.dat": PICTURE, "conversation_asset_file_names.json": {}},
    )

    report = await kit.exchange.import_from(path)

    (question,) = await messages(kit)
    assert [image.sha256 for image in question.images] == [SHA]
    assert question.text == "What is it?\n[report.pdf was attached. The export doesn't contain its text.]"
    assert report.left_out == LeftOut(files=1)


LM_STUDIO = {
    "name": "Birds",
    "pinned": True,
    "createdAt": 1_784_921_389_195,
    "userLastMessagedAt": 1_784_921_400_000,
    "systemPrompt": "You know birds.",
    "lastUsedModel": {"identifier": "qwen/qwen3.6-35b-a3b"},
    "messages": [
        {
            "currentlySelected": 0,
            "versions": [
                {
                    "type": "singleStep",
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Which bird wades?"},
                        {"type": "file", "fileType": "image", "fileIdentifier": "1 - heron.png", "sizeBytes": 9},
                    ],
                }
            ],
        },
        {
            "currentlySelected": 1,
            "versions": [
                {"type": "multiStep", "role": "assistant", "steps": [
                    {"type": "contentBlock", "content": [{"type": "text", "text": "A stork."}]}]},
                {"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "qwen3.6"}, "steps": [
                    {"type": "contentBlock", "style": {"type": "thinking", "ended": True},
                     "content": [{"type": "text", "text": "Long legs."}]},
                    {"type": "contentBlock", "content": [{"type": "toolCallRequest", "name": "search"}]},
                    {"type": "contentBlock", "content": [{"type": "text", "text": "A heron."}]},
                    {"type": "debugInfoBlock", "debugInfo": "named by the prompt"}]},
            ],
        },
        {"currentlySelected": 0, "versions": [
            {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Thanks."}]}]},
    ],
}  # fmt: skip


@case(LOST, Way.IMPORT, report="serene-pub#69: LM Studio's conversation.json", before="failed")
async def test_a_conversation_of_lm_studio(kit: Kit) -> None:
    report = await kit.import_bytes(json.dumps(LM_STUDIO).encode(), "1784921389195.conversation.json")

    (summary,) = kit.chat_list.chats.summaries.values()
    tree = await kit.tree()
    path = tree.path()
    assert [(node.message.role, node.message.text, node.message.reasoning) for node in path] == [
        ("user", "Which bird wades?\n[A picture was here. The export doesn't contain it.]", ""),
        ("assistant", "A heron.", "Long legs."),
        ("user", "Thanks.", ""),
    ]
    assert len(tree.versions(path[1].id)) == 2
    assert path[1].model == "qwen3.6"
    assert (summary.title, summary.pinned, summary.created_s) == ("Birds", True, 1_784_921_389.195)
    assert (summary.settings.system_prompt, summary.settings.is_tainted) == ("You know birds.", True)
    assert report == ImportReport(chats=1, messages=4, left_out=LeftOut(pictures=1, tool_messages=1))
    assert (await kit.import_value(LM_STUDIO)).already_here == 1


@case(LOST, Way.IMPORT, report="lmstudio-bug-tracker#586: its folder of chats, packed", before="failed")
async def test_the_folder_of_lm_studio_as_a_zip(kit: Kit, tmp_path: Path) -> None:
    other = LM_STUDIO | {"name": "Old", "createdAt": 5, "messages": [{"role": "user", "content": "Plain text."}]}
    path = zipped(
        tmp_path / "conversations.zip",
        **{
            "conversations/1.conversation.json": LM_STUDIO,
            "conversations/work/2.conversation.json": other,
            "conversations/._1.conversation.json": b"\0\5\x16\7",
        },
    )

    report = await kit.exchange.import_from(path)

    assert (report.chats, kit.titles) == (2, {"Birds", "Old"})


def owui(**messages: dict[str, Any]) -> dict[str, Any]:
    history = {
        "currentId": list(messages)[-1],
        "messages": {key: {"id": key, **each} for key, each in messages.items()},
    }
    return {
        "id": "0f1e",
        "user_id": "u",
        "title": "Herons",
        "chat": {"title": "Herons", "models": ["qwen"], "params": {"system": "Be brief."}, "history": history},
        "created_at": 1_700_000_000,
        "updated_at": 1_700_000_100,
        "archived": False,
        "pinned": True,
        "meta": {"tags": []},
    }


THOUGHT = (
    '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n'
    "&gt; Long legs,\n&gt; a &lt; b.\n</details>\n"
)
CALL = (
    '<details type="tool_calls" done="true" id="call_1" name="web_search" arguments="{&quot;q&quot;: &quot;x&quot;}" '
    'result="&quot;ok&quot;">\n<summary>Tool Executed</summary>\n</details>\n'
)


@case(LOST, Way.IMPORT, report="open-webui#7613: chats that were downloaded, without Open WebUI", before="failed")
async def test_chats_of_open_webui(kit: Kit) -> None:
    picture = {"type": "image", "url": f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"}
    files = [picture, {"type": "image", "url": "/api/v1/files/7/content"}, {"type": "file", "name": "notes.docx"}]
    chat = owui(
        q={"parentId": None, "childrenIds": ["a", "b"], "role": "user", "content": "Which?", "files": files},
        a={"parentId": "q", "role": "assistant", "content": "A stork.", "model": "qwen", "timestamp": 1_700_000_001},
        b={"parentId": "q", "role": "assistant", "content": f"{THOUGHT}{CALL}A heron.", "modelName": "Qwen"},
    )

    report = await kit.import_bytes(json.dumps([chat, chat | {"id": "2", "chat": None}]).encode(), "chat-export-1.json")

    (summary,) = kit.chat_list.chats.summaries.values()
    tree = await kit.tree()
    question, answer = tree.path()
    assert [image.sha256 for image in question.message.images] == [SHA]
    assert question.message.text.endswith("[notes.docx was attached. The export doesn't contain its text.]\nWhich?")
    assert (answer.message.text, answer.message.reasoning) == ("A heron.", "Long legs,\na < b.")
    assert (answer.model, len(tree.versions(answer.id))) == ("Qwen", 2)
    assert (summary.title, summary.pinned, summary.settings.system_prompt) == ("Herons", True, "Be brief.")
    assert report == ImportReport(
        chats=1, messages=3, unreadable=1, left_out=LeftOut(pictures=1, files=1, tool_messages=1)
    )
    assert report.sentence.endswith("Not imported: 1 picture, 1 file, 1 message of a tool.")


@case(LOST, Way.IMPORT, report="LibreChat#15388: one bad chat discarded the file", before="held")
async def test_a_bad_chat_is_counted_and_the_rest_comes_in(kit: Kit, tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "export.zip",
        **{"conversations-000.json": [talk("One"), {"mapping": 3}], "conversations-001.json": [talk("Two"), None]},
    )

    report = await kit.exchange.import_from(path)

    assert (report.chats, report.unreadable) == (2, 2)


@case(LOST, Way.IMPORT, report="found by trying: files that look like chats", before="held")
@pytest.mark.parametrize(
    "value",
    [
        {"messages": 3}, {"chat": []}, {"mapping": None}, {"messages": []}, {"name": "x"},
        [{"chat": {"history": {"messages": []}}}], [{"messages": "no"}],
    ],
)  # fmt: skip
async def test_what_holds_no_chat_adds_none(kit: Kit, value: Any) -> None:
    with contextlib.suppress(BadExchange):
        assert (await kit.import_value(value)).chats == 0

    assert kit.titles == set()
