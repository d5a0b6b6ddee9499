"""The user's sampling presets: saving, using, changing, undoing, exporting and importing."""

import json
import re
import threading

import pytest

from qwendesk.chat.chat_settings import inherited_settings
from qwendesk.chat.presets import PresetsService, PresetsState
from qwendesk.core import json_file
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.options import LoadOptions


@pytest.fixture
def file(tmp_path):
    return tmp_path / "config" / "presets.json"


@pytest.fixture
def presets(desk, file):
    return PresetsService(desk.chat, file)


def set_by_hand(desk, **overrides: str) -> None:
    desk.chat.change_settings(ChatSettings(overrides=overrides))


async def test_saved_preset_can_be_used_in_another_chat(desk, presets, file):
    await desk.engine.load(LoadOptions(model="/models/Qwen3.5-9B-Q4_K_M.gguf"))
    set_by_hand(desk, temperature="0.3", stop="END; a, b", thinking_budget="512", grammar='root ::= "a"')
    wanted = desk.chat.options()
    presets.save("  Dry   facts ")
    assert desk.chat.options() == wanted, "keeping them changes nothing"
    assert desk.chat.settings.overrides == {"thinking_budget": "512", "grammar": 'root ::= "a"'}
    desk.chat.new_chat()
    desk.chat.change_settings(ChatSettings(thinking=False))
    await presets.close()
    presets = PresetsService(desk.chat, file)
    assert presets.state.value.names == ("Dry facts",)
    presets.use("Dry facts")
    made = desk.chat.options()
    same = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "repeat_penalty", "stop")
    assert [getattr(made, key) for key in same] == [getattr(wanted, key) for key in same]
    assert (made.grammar, made.thinking_budget, made.enable_thinking) == ("", -1, False), "no preset holds these"


def test_chat_keeps_its_values_when_the_preset_is_changed_or_deleted(desk, presets, file):
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
    assert (presets.state.value.names, desk.chat.options().temperature, first.preset_values["temperature"]) == (
        (),
        0.3,
        "0.3",
    )
    presets.undo()
    assert presets.state.value.names == PresetsService(desk.chat, file).state.value.names == ("Ours",)
    assert not presets.state.value.can_undo


@pytest.mark.parametrize("name", ["", " \n", "n" * 61, "Coding", "custom"])
def test_invalid_preset_name_is_refused(desk, presets, file, name):
    set_by_hand(desk, temperature="0.3")
    with pytest.raises(BadRequest):
        presets.save(name)
    assert (presets.state.value.names, file.exists(), desk.chat.settings.preset_name) == ((), False, "")


def test_presets_are_exported_and_imported(desk, presets, tmp_path):
    for name, temperature in (("A", "0.1"), ("B", "0.2")):
        set_by_hand(desk, temperature=temperature)
        presets.save(name)
    out = tmp_path / "out.json"
    presets.export(out)
    set_by_hand(desk, temperature="0.7")
    presets.save("B")
    assert presets.import_file(out) == 1, "A is there already"
    assert presets.state.value.names == ("A", "B", "B (2)")
    presets.use("B (2)")
    assert desk.chat.options().temperature == 0.2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not a presets file"),
        ('{"format": "qwendesk-profile"}', "not a presets file"),
        ('{"format": "qwendesk-presets", "version": 2, "presets": 7}', "newer"),
        ('{"format": "qwendesk-presets", "version": 1, "presets": []}', "contains no presets"),
        ({"temperature": "hot"}, "“X”.*hot"),
        ({"grammar": "x"}, "presets can't hold"),
        ({"nonsense": "1"}, "presets can't hold"),
    ],
)
def test_invalid_presets_file_is_refused_as_a_whole(desk, presets, tmp_path, content, complaint):
    bad = tmp_path / "bad.json"
    if isinstance(content, dict):
        good = {"name": "Good", "values": {}}
        whole = {"format": "qwendesk-presets", "version": 1, "presets": [good, {"name": "X", "values": content}]}
        content = json.dumps(whole)
    bad.write_text(content)
    with pytest.raises(QwenDeskError) as refused:
        presets.import_file(bad)
    assert re.search(complaint, refused.value.sentence)
    assert presets.state.value.names == ()


def test_damaged_file_is_renamed_and_reported(desk, file):
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00{not json")
    presets = PresetsService(desk.chat, file)
    assert "damaged" in presets.state.value.problem
    assert file.with_name("presets.json.unusable").read_bytes() == b"\x00{not json"
    presets.save("Mine")
    assert PresetsService(desk.chat, file).state.value.names == ("Mine",)


def test_built_in_style_sets_thinking_too(desk, presets):
    set_by_hand(desk, temperature="0.3", thinking_budget="512")
    presets.save("Mine")
    presets.use_built_in("precise", thinking=False)
    assert (desk.chat.style, desk.chat.thinking, desk.chat.settings.preset_name) == ("precise", False, "")
    assert desk.chat.settings.overrides == {"thinking_budget": "512"}


def test_new_chat_inherits_the_preset_only():
    before = ChatSettings(
        system_prompt="Be kind.", preset="custom", preset_name="Mine", preset_values={"temperature": "0.3"},
        thinking=False, overrides={"grammar": 'root ::= "a"', "thinking_budget": "512"}, model="/m.gguf",
        left_out_turns=3, leave_out_old_documents=True,
    )  # fmt: skip
    assert inherited_settings(before) == ChatSettings(
        preset="custom", preset_name="Mine", preset_values={"temperature": "0.3"}
    )
    by_hand = ChatSettings(preset="custom", overrides={"temperature": "0.3"})
    assert inherited_settings(by_hand) == ChatSettings(), "the style Custom is nothing but changed values"
    assert inherited_settings(ChatSettings(preset="precise", thinking=False)) == ChatSettings(preset="precise")


async def test_file_is_written_on_another_thread_and_errors_are_reported(desk, presets, file, monkeypatch):
    threads = []

    def refuse(path, content):
        threads.append(threading.current_thread())
        raise PermissionError(13, "refused")

    monkeypatch.setattr(json_file, "write_whole", refuse)
    presets.save("Mine")
    await presets.close()
    assert threads
    assert threading.current_thread() not in threads
    assert "refused" in presets.state.value.problem
    monkeypatch.undo()
    presets.save("Mine")
    await presets.close()
    assert PresetsService(desk.chat, file).state.value == PresetsState(("Mine",))
