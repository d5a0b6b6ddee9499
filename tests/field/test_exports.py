"""Exports of other programs come in whole: branches, reasoning, pictures that are missing, odd values."""

import json
from pathlib import Path

from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.field.grid import SERVER, Kind, Way, case

_ONLY_IMPORT = "chats of other programs come in by an import alone, which the window starts"
EXPORTS = Kind(
    "An export of ChatGPT is refused, or loses messages and branches",
    dict.fromkeys((Way.WINDOW, Way.CLI, *SERVER, Way.MCP), _ONLY_IMPORT),
)


@case(EXPORTS, Way.IMPORT, report="ChatGPT's exports since 2023", before="held")
async def test_a_chatgpt_export_keeps_branches_and_leaves_out_tools(tmp_path: Path) -> None:
    asked = gpt_node("1", None, "user", "Which bird wades?")
    hidden = gpt_node("0", "1", "system", "You are ChatGPT.", metadata={"is_visually_hidden_from_conversation": True})
    tool = gpt_node("2", "0", "tool", "a page with orders")
    first, second = gpt_node("3", "2", "assistant", "A heron."), gpt_node("4", "2", "assistant", "A stork.")
    chat = gpt_chat(asked, hidden, tool, first, second, current_node="4", title="Birds")
    odd = gpt_chat(gpt_node("5", "6", "user", "No root"), create_time="yesterday", update_time="soon")

    kit = Kit(tmp_path)
    await kit.start()
    report = await kit.import_bytes(json.dumps([chat, odd, "no chat", {}]).encode())

    assert (report.chats, report.unreadable) == (2, 2)
    summaries = kit.chat_list.chats.summaries
    assert kit.titles == {"Birds", "From outside"}
    (birds,) = [each for each in summaries.values() if each.title == "Birds"]
    tree = await kit.chat_list.tree(birds.id)
    assert [each.message.text for each in tree.path()] == ["Which bird wades?", "A stork."]
    assert sorted(each.message.text for each in tree.nodes.values()) == ["A heron.", "A stork.", "Which bird wades?"]
    assert all(each.settings.is_imported for each in summaries.values()), "which taints"
    await kit.chat_list.close()
