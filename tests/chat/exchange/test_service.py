"""Exports are complete, and hostile imports do no harm."""

import asyncio
import base64
import hashlib
import json
import zipfile
from pathlib import Path

import msgspec
import pytest

from qwendesk.chat.exchange.service import file_stem
from qwendesk.chat.exchange.values import BadExchange, ExportFormat, ImportReport, LeftOut
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSettings, ChatSummary, Folder
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import ClipFrame, DocumentPart, ImagePart, Message, TextPart, text_message
from qwendesk.core.stats import AnswerStats
from tests.chat.exchange.kit import PICTURE, SHA, Kit, gpt_chat, gpt_node


async def a_full_chat(kit: Kit) -> ChatSummary:
    """With a branch, a picture, a thought, figures, a folder and settings of its own."""
    original = kit.folder / "cat.png"
    await asyncio.to_thread(original.write_bytes, PICTURE)
    question = ChatNode(
        id=new_id(), message=Message("user", (ImagePart(str(original), SHA), TextPart("What is <b>it</b>?")))
    )
    answer = ChatNode(
        id=new_id(),
        parent_id=question.id,
        message=text_message("assistant", "A **cat**.", reasoning="Whiskers."),
        stop_reason="eos",
        stats=AnswerStats(answer_tokens=3),
        thought_s=2.0,
        model="Demo",
        options_json='{"seed":1}',
    )
    newer = ChatNode(id=new_id(), parent_id=question.id, message=text_message("assistant", "A dog."))
    tree = ChatTree().with_node(question).with_node(answer).with_node(newer).showing(answer.id)
    folder = kit.chat_list.folders.add("Animals")
    summary = ChatSummary(
        id=new_id(),
        title="Cat: or/dog?",
        folder_id=folder.id,
        pinned=True,
        created_s=5.0,
        changed_s=6.0,
        settings=ChatSettings(
            system_prompt="Be brief.",
            preset="custom",
            preset_name="Mine",
            preset_values={"temperature": "0.3"},
            thinking=False,
            overrides={"thinking_budget": "512"},
            json_schema="{}",
            leave_out_old_documents=True,
        ),
    )
    await kit.chat_list.add_chats([(summary, tree)])
    return summary


def without_places(tree: ChatTree) -> str:
    """A tree as text, without where its pictures lie."""
    value = msgspec.to_builtins(tree)
    for node in value["nodes"].values():
        for part in node["message"]["parts"]:
            part.pop("path", None)
            part.pop("file_stamp", None)
    return json.dumps(value)


async def test_json_export_imports_completely_on_another_pc(kit: Kit, other: Kit, tmp_path: Path) -> None:
    summary = await a_full_chat(kit)
    path = tmp_path / "all.json"
    assert await kit.exchange.export(path, "json") == 1
    before = await kit.tree()

    report = await other.exchange.import_from(path)

    assert report == ImportReport(chats=1, messages=3)
    (row,) = other.chat_list.chats.summaries.values()
    assert row.settings.is_imported
    came = msgspec.structs.replace(row, folder_id="", settings=summary.settings)
    assert came == msgspec.structs.replace(summary, folder_id="")
    assert msgspec.structs.replace(row.settings, is_imported=False) == summary.settings
    assert [(each.id, each.name) for each in other.chat_list.folders.folders] == [(row.folder_id, "Animals")]
    after = await other.tree()
    assert without_places(after) == without_places(before)
    (image,) = after.path()[0].message.images
    assert await asyncio.to_thread(Path(image.path).read_bytes) == PICTURE
    assert str(other.folder) in image.path


async def test_second_import_adds_nothing_but_restores_deleted_chats(kit: Kit, tmp_path: Path) -> None:
    summary = await a_full_chat(kit)
    path = tmp_path / "all.json"
    await kit.exchange.export(path, "json")

    assert await kit.exchange.import_from(path) == ImportReport(already_here=1)

    kit.chat_list.delete([summary.id])
    assert (await kit.exchange.import_from(path)).chats == 1
    assert kit.titles == {"Cat: or/dog?"}
    assert [each.message.text for each in (await kit.tree()).path()] == ["What is <b>it</b>?", "A **cat**."]
    assert [each.name for each in kit.chat_list.folders.folders] == ["Animals"]


async def test_exports_contain_no_local_paths(kit: Kit, tmp_path: Path) -> None:
    await a_full_chat(kit)
    for kind in ("json", "html", "markdown_thoughts"):
        await kit.exchange.export(tmp_path / "out", kind)
        assert str(tmp_path) not in await asyncio.to_thread((tmp_path / "out").read_text)


async def test_markdown_contains_reasoning_only_if_chosen(kit: Kit, tmp_path: Path) -> None:
    await a_full_chat(kit)
    await kit.exchange.export(tmp_path / "a.md", "markdown")
    await kit.exchange.export(tmp_path / "b.md", "markdown_thoughts")
    plain, full = [await asyncio.to_thread((tmp_path / name).read_text) for name in ("a.md", "b.md")]

    assert "Whiskers" not in plain
    assert "> Thought for 2.0 s\n>\n> Whiskers." in full
    for text in (plain, full):
        assert text.startswith("# Cat: or/dog?\n")
        assert "## System prompt\n\nBe brief." in text
        assert "## Demo\n\n" in text
        assert "A **cat**." in text
        assert "A dog" not in text


async def test_documents_are_exported_as_quotes(kit: Kit, tmp_path: Path) -> None:
    document = DocumentPart("a<b>.py", "print('<script>')\n", language="python")
    await kit.chat("One", "1")
    (chat_id,) = kit.chat_list.chats.summaries
    last = (await kit.tree()).path()[-1]
    asked = ChatNode(id=new_id(), parent_id=last.id, message=Message("user", (document, TextPart("What is it?"))))
    await kit.say(chat_id, asked)
    await kit.exchange.export(tmp_path / "a.md", "markdown")
    await kit.exchange.export(tmp_path / "a.html", "html")
    await kit.exchange.export(tmp_path / "a.json", "json")
    plain, page, whole = [
        await asyncio.to_thread((tmp_path / f"a.{each}").read_text) for each in ("md", "html", "json")
    ]
    assert "a<b>.py:\n```python\nprint('<script>')\n```\n\nWhat is it?" in plain
    assert "<summary>a&lt;b&gt;.py</summary><pre>print(&#x27;&lt;script&gt;&#x27;)\n</pre>" in page
    assert json.loads(whole)["chats"][0]["nodes"][-1]["message"]["parts"][0]["text"] == document.text


async def test_a_clip_is_exported_as_one_line(kit: Kit, other: Kit, tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(PICTURE)
    frames = [
        ImagePart(str(tmp_path / "one.png"), SHA, frame=ClipFrame("a<b>.mp4", "clip", float(at), 24.0))
        for at in range(24)
    ]
    await kit.chat("One", "1")
    (chat_id,) = kit.chat_list.chats.summaries
    last = (await kit.tree()).path()[-1]
    asked = ChatNode(id=new_id(), parent_id=last.id, message=Message("user", (*frames, TextPart("What happens?"))))
    await kit.say(chat_id, asked)
    await kit.exchange.export(tmp_path / "a.md", "markdown")
    await kit.exchange.export(tmp_path / "a.html", "html")
    await kit.exchange.export(tmp_path / "a.json", "json")
    plain, page = [await asyncio.to_thread((tmp_path / f"a.{each}").read_text) for each in ("md", "html")]
    assert "*(a<b>.mp4, 24 s, 24 frames)*\n\nWhat happens?" in plain
    assert page.count("a&lt;b&gt;.mp4, 24 s, 24 frames") == 1
    assert "<img" not in page

    await other.exchange.import_from(tmp_path / "a.json")
    imported = (await other.tree()).path()[-1].message.images
    assert [image.frame for image in imported] == [image.frame for image in frames]


async def test_web_page_embeds_pictures_and_runs_no_script(kit: Kit, tmp_path: Path) -> None:
    await a_full_chat(kit)
    hostile = (
        "<script>alert(1)</script> <img src=x onerror=alert(2)> [a](javascript:alert(3)) ![p](https://evil.example/p.png)\n"
        '\n<a href="data:text/html,x">x</a> [ok](https://example.org/)'
    )
    (chat_id,) = kit.chat_list.chats.summaries
    last = (await kit.tree()).path()[-1]
    await kit.say(
        chat_id, ChatNode(id=new_id(), parent_id=last.id, message=text_message("assistant", hostile, reasoning=hostile))
    )
    await kit.exchange.export(tmp_path / "a.html", "html")
    page = await asyncio.to_thread((tmp_path / "a.html").read_text)

    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<img src=x" not in page
    assert 'href="javascript' not in page
    assert 'href="data' not in page
    assert 'src="http' not in page
    assert '<a href="https://example.org/">ok</a>' in page
    assert f'src="data:image/png;base64,{base64.b64encode(PICTURE).decode()}"' in page
    assert "What is &lt;b&gt;it&lt;/b&gt;?" in page
    assert "<strong>cat</strong>" in page


async def test_several_chats_are_exported_as_a_zip_with_a_file_each(kit: Kit, tmp_path: Path) -> None:
    await kit.chat("Same", "1")
    await kit.chat("Same", "2")
    await kit.exchange.export(tmp_path / "all.zip", "markdown")

    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert sorted(archive.namelist()) == ["Same (2).md", "Same.md"]
    assert kit.exchange.file_name("markdown", ()) == "QwenDesk chats.zip"
    assert kit.exchange.file_name("json", ()) == "QwenDesk chats.json"


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("a/b\\c:d", "a b c d"),
        ("../../etc", "etc"),
        ("con", "con chat"),
        ("", "Chat"),
        ("x" * 300, "x" * 80),
        (".", "Chat"),
    ],
)
async def test_file_stem_is_valid_on_every_system(title: str, stem: str) -> None:
    assert file_stem(title) == stem


async def test_unwritable_export_path_is_reported(kit: Kit, tmp_path: Path) -> None:
    await kit.chat("One", "1")
    await asyncio.to_thread((tmp_path / "file").touch)

    with pytest.raises(BadExchange, match="can't be written"):
        await kit.exchange.export(tmp_path / "file" / "a.md", "markdown")


async def test_chatgpt_import_keeps_branches_reasoning_and_the_shown_path(kit: Kit) -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "S", "content": "Deep."}]}
    chat = gpt_chat(
        {"id": "root", "parent": None, "message": None},
        gpt_node("sys", "root", "system", "hidden"),
        gpt_node("q", "sys", "user", "Why?"),
        gpt_node("t", "q", "assistant", content=thoughts),
        gpt_node("tool", "t", "tool", "search results"),
        gpt_node("a", "tool", "assistant", "Because.", metadata={"model_slug": "gpt-x"}),
        gpt_node("call", "q", "assistant", "search()", recipient="browser"),
        gpt_node("b", "call", "assistant", "Newer."),
        current_node="a",
    )

    report = await kit.import_value([chat])

    assert report == ImportReport(chats=1, messages=3, left_out=LeftOut(tool_messages=2))
    path = (await kit.tree()).path()
    assert [(each.message.role, each.message.text, each.message.reasoning) for each in path] == [
        ("user", "Why?", ""),
        ("assistant", "Because.", "Deep."),
    ]
    assert path[1].model == "gpt-x"
    assert len((await kit.tree()).versions(path[1].id)) == 2
    assert kit.titles == {"From outside"}


HOSTILE = {
    "nothing": b"",
    "no json": b"\x00\xff not json",
    "a number": b"7",
    "half": b'{"format": "qwendesk-chats", "version": 1, "chats": [{',
    "another format": b'{"format": "x", "version": 1}',
    "a newer version": b'{"format": "qwendesk-chats", "version": 99}',
    "wrong types": b'{"format": "qwendesk-chats", "version": "1", "chats": 5}',
    "very deep": b"[" * 200_000,
    "very deep within": b'[{"mapping": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]",
    "a list of rubbish": b'[1, null, "x", {}, {"mapping": 3}]',
    "a zip without chats": b"PK\x05\x06" + b"\0" * 18,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_file_that_is_no_export_is_refused(kit: Kit, name: str) -> None:
    with pytest.raises(BadExchange) as refused:
        await kit.import_bytes(HOSTILE[name])

    assert len(refused.value.sentence) > 20
    assert kit.titles == set()


@pytest.mark.parametrize("kind", ["markdown", "markdown_thoughts", "html"])
@pytest.mark.parametrize("n_chats", [1, 2])
async def test_export_for_reading_is_refused_with_what_can_be_imported(
    kit: Kit, tmp_path: Path, kind: ExportFormat, n_chats: int
) -> None:
    for number in range(n_chats):
        await kit.chat("Plans", str(number))
    path = tmp_path / kit.exchange.file_name(kind, list(kit.chat_list.chats.summaries))
    await kit.exchange.export(path, kind)

    with pytest.raises(BadExchange, match=r"are for reading .* Export them as JSON"):
        await kit.exchange.import_from(path)


async def test_hostile_import_changes_no_other_chats_or_files(kit: Kit, tmp_path: Path) -> None:
    """It names a message that is here, a path of this PC, a circle, and a picture that is not what it says."""
    victim = await a_full_chat(kit)
    stolen = tmp_path / "secret.txt"
    await asyncio.to_thread(stolen.write_bytes, b"secret")
    secret_sha = hashlib.sha256(b"secret").hexdigest()
    known = next(iter((await kit.chat_list.tree(victim.id)).nodes))
    circle = [new_id(), new_id()]
    image = {"type": "image", "path": str(stolen), "sha256": secret_sha}
    nodes = [
        {"id": known, "message": {"role": "user", "parts": [{"type": "text", "text": "overwritten"}]}},
        {"id": new_id(), "parent_id": known, "message": {"role": "user", "parts": [image]}, "created_s": -1e300},
        {"id": circle[0], "parent_id": circle[1], "message": {"role": "user"}},
        {"id": circle[1], "parent_id": circle[0], "message": {"role": "user"}},
        {"id": "../../x", "message": {"role": "user"}},
    ]
    summary = {
        "id": new_id(),
        "title": "Evil\n\n" + "x" * 9999,
        "settings": {"model": "/tmp/evil.gguf"},
        "folder_id": "no",
    }
    value = {
        "format": "qwendesk-chats",
        "version": 1,
        "chats": [{"summary": summary, "nodes": nodes, "shown": {"": "nobody"}}, {"summary": 3}],
        "files": {secret_sha: base64.b64encode(b"other").decode(), "../../evil": "AAAA", "x": "???"},
    }

    report = await kit.import_value(value)

    assert report == ImportReport(chats=1, messages=4, unreadable=1)
    assert (await kit.chat_list.tree(victim.id)).path()[0].message.text == "What is <b>it</b>?"
    evil = next(each for each in kit.chat_list.chats.summaries.values() if each.title.startswith("Evil"))
    assert len(evil.title) == 500
    assert (evil.settings.model, evil.folder_id) == ("", "")
    tree = await kit.chat_list.tree(evil.id)
    assert known not in tree.nodes
    assert [image.path for node in tree.nodes.values() for image in node.message.images] == [""]
    assert not (tmp_path / "evil").exists()
    assert len(tree.path()) >= 1


async def test_folders_with_the_same_name_are_merged(kit: Kit) -> None:
    ours = kit.chat_list.folders.add("Work")
    value = {
        "format": "qwendesk-chats",
        "version": 1,
        "folders": [{"id": "f", "name": "work"}, {"id": "unused", "name": "Unused"}],
        "chats": [{"summary": {"id": new_id(), "title": "T", "folder_id": "f"}}],
    }

    await kit.import_value(value)

    assert kit.chat_list.folders.folders == (Folder(ours.id, "Work"),)
    assert [each.folder_id for each in kit.chat_list.chats.summaries.values()] == [ours.id]
