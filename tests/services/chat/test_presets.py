"""The person's own sampling presets: kept, chosen, changed, taken back, and as files."""

import json
import re

import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.services.chat.chat import settings_for_new
from qwendesk.services.chat.presets import PresetsService


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config" / "presets.json"


@pytest.fixture
def presets(desk, file):
    return PresetsService(desk.chat, file)


def set_by_hand(desk, **overrides: str) -> None:
    desk.chat.change_settings(ChatSettings(overrides=overrides))


@pytest.mark.asyncio
async def test_what_holds_now_is_kept_and_used_in_another_chat(desk, presets, file):
    await desk.engine.load(LoadOptions(model="/models/Qwen3.5-9B-Q4_K_M.gguf"))
    set_by_hand(desk, temperature="0.3", stop="END; a, b", thinking_budget="512", grammar='root ::= "a"')
    wanted = desk.chat.options()
    presets.save("  Dry   facts ")
    assert desk.chat.options() == wanted, "keeping them changes nothing"
    assert desk.chat.settings.overrides == {"thinking_budget": "512", "grammar": 'root ::= "a"'}
    desk.chat.new_chat()
    desk.chat.change_settings(ChatSettings(thinking=False))
    presets = PresetsService(desk.chat, file)
    assert presets.names == ("Dry facts",)
    presets.use("Dry facts")
    made = desk.chat.options()
    same = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "repeat_penalty", "stop")
    assert [getattr(made, key) for key in same] == [getattr(wanted, key) for key in same]
    assert (made.grammar, made.thinking_budget, made.enable_thinking) == ("", -1, False), "no preset holds these"


def test_a_chat_keeps_what_it_took_when_the_preset_changes_or_goes(desk, presets, file):
    set_by_hand(desk, temperature="0.3")
    presets.save("Mine")
    first = desk.chat.settings
    desk.chat.new_chat()
    set_by_hand(desk, temperature="0.9")
    presets.save("Mine")
    presets.undo()
    assert desk.chat.settings == ChatSettings(overrides={"temperature": "0.9"}), "as before it was written over"
    presets.use("Mine")
    assert desk.chat.options().temperature == 0.3
    presets.rename("Mine", "Ours")
    assert desk.chat.settings.preset_name == "Ours"
    presets.delete("Ours")
    assert (presets.names, desk.chat.options().temperature, first.preset_values["temperature"]) == ((), 0.3, "0.3")
    presets.undo()
    assert presets.names == PresetsService(desk.chat, file).names == ("Ours",)
    assert not presets.can_undo


@pytest.mark.parametrize("name", ["", " \n", "n" * 61, "Coding", "custom"])
def test_a_name_that_cannot_be_is_refused_and_nothing_changes(desk, presets, file, name):
    set_by_hand(desk, temperature="0.3")
    with pytest.raises(BadRequest):
        presets.save(name)
    assert (presets.names, file.exists(), desk.chat.settings.preset_name) == ((), False, "")


def test_presets_travel_as_a_file(desk, presets, tmp_path):
    for name, temperature in (("A", "0.1"), ("B", "0.2")):
        set_by_hand(desk, temperature=temperature)
        presets.save(name)
    out = tmp_path / "out.json"
    presets.export(out)
    set_by_hand(desk, temperature="0.7")
    presets.save("B")
    assert presets.take_in(out) == 1, "A is there already"
    assert presets.names == ("A", "B", "B (2)")
    presets.use("B (2)")
    assert desk.chat.options().temperature == 0.2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "no presets"),
        ('{"format": "qwendesk-profile"}', "no presets"),
        ('{"format": "qwendesk-presets", "version": 2, "presets": 7}', "newer"),
        ('{"format": "qwendesk-presets", "version": 1, "presets": []}', "no preset"),
        ({"temperature": "hot"}, '"X".*hot'),
        ({"grammar": "x"}, "no preset holds"),
        ({"nonsense": "1"}, "no preset holds"),
    ],
)
def test_a_file_that_is_none_is_refused_whole(desk, presets, tmp_path, content, complaint):
    bad = tmp_path / "bad.json"
    if isinstance(content, dict):
        good = {"name": "Good", "values": {}}
        whole = {"format": "qwendesk-presets", "version": 1, "presets": [good, {"name": "X", "values": content}]}
        content = json.dumps(whole)
    bad.write_text(content)
    with pytest.raises(QwenDeskError) as refused:
        presets.take_in(bad)
    assert re.search(complaint, refused.value.sentence)
    assert presets.names == ()


def test_a_damaged_file_is_set_aside_and_said(desk, file):
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00{not json")
    presets = PresetsService(desk.chat, file)
    assert "damaged" in presets.problem
    assert file.with_name("presets.json.unusable").read_bytes() == b"\x00{not json"
    presets.save("Mine")
    assert PresetsService(desk.chat, file).names == ("Mine",)


def test_a_newer_file_stays_as_it_is(desk, file):
    file.parent.mkdir(parents=True)
    newer = '{"format": "qwendesk-presets", "version": 2, "presets": {"of": "another form"}}'
    file.write_text(newer)
    presets = PresetsService(desk.chat, file)
    assert "newer" in presets.problem
    with pytest.raises(BadRequest, match="newer"):
        presets.save("Mine")
    assert (file.read_text(), desk.chat.settings) == (newer, ChatSettings())


def test_a_folder_that_cannot_be_written_says_so_and_the_change_holds(desk, tmp_path):
    presets = PresetsService(desk.chat, tmp_path / "file" / "presets.json")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(QwenDeskError, match="could not be saved"):
        presets.save("Mine")
    assert presets.names == ("Mine",)


def test_the_cards_four_are_chosen_with_their_thinking(desk, presets):
    set_by_hand(desk, temperature="0.3", thinking_budget="512")
    presets.save("Mine")
    presets.use_built_in("precise", thinking=False)
    assert (desk.chat.style, desk.chat.thinking, desk.chat.settings.preset_name) == ("precise", False, "")
    assert desk.chat.settings.overrides == {"thinking_budget": "512"}


def test_a_new_chat_answers_as_the_one_before_and_is_about_nothing():
    before = ChatSettings(
        system_prompt="Be kind.", preset="custom", preset_name="Mine", preset_values={"temperature": "0.3"},
        thinking=False, overrides={"grammar": 'root ::= "a"', "thinking_budget": "512"}, model="/m.gguf",
        left_out_turns=3, leave_out_old_documents=True,
    )  # fmt: skip
    assert settings_for_new(before) == ChatSettings(
        preset="custom", preset_name="Mine", preset_values={"temperature": "0.3"}, thinking=False,
        overrides={"thinking_budget": "512"},
    )  # fmt: skip
