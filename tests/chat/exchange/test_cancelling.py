"""Whoever imports or exports may be cancelled at any moment: the next import adds what is missing, once."""

import asyncio
import itertools
import json
from pathlib import Path

import pytest

from qwendesk.chat.exchange import service
from qwendesk.chat.exchange.service import ExchangeService
from tests.cancelling import cancelled_at, public_coroutines
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node

CHATS = [gpt_chat(gpt_node(f"a{each}", None), gpt_node(f"b{each}", f"a{each}", text="Which?")) for each in range(3)]


async def test_every_coroutine_of_import_and_export_is_tried() -> None:
    assert public_coroutines(ExchangeService) == {"export", "import_from"}


@pytest.mark.parametrize("when_done", [False, True])
async def test_cancelled_at_each_await_an_import_or_export_is_whole_or_can_be_repeated(
    other: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when_done: bool
) -> None:
    monkeypatch.setattr(service, "_GROUP_BYTES", 1)  # each chat is a group
    source, saved = tmp_path / "chats.json", tmp_path / "saved.json"
    await other.import_value(CHATS)
    await other.exchange.export(source, "json")
    for number in itertools.count(1):
        kit = Kit(tmp_path / str(number))
        await kit.start()
        has_imported = await cancelled_at(number, kit.exchange.import_from(source), when_done=when_done)
        report = await kit.exchange.import_from(source)
        assert report.chats + report.already_here == len(CHATS) == len(kit.chat_list.chats.summaries)
        has_exported = await cancelled_at(number, kit.exchange.export(saved, "json"), when_done=when_done)
        assert await kit.exchange.export(saved, "json") == len(CHATS)
        assert len(json.loads(await asyncio.to_thread(saved.read_bytes))["chats"]) == len(CHATS)
        await kit.chat_list.close()
        if has_imported and has_exported:
            break
