"""The inspector as a person uses it: a slider reprices, what cannot be is told, a reload keeps the chat."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QPlainTextEdit, QSlider, QWidget

from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.translation import unbroken
from qwendesk.engine.state import Phase
from qwendesk.engines.view.load_options.command_card import CommandCard
from qwendesk.widgets.actions import installed
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.vram_bar import VramBar
from tests.engines.view.load_options.inspector_desk import InspectorDesk
from tests.fakes.engine import ScriptedAnswer


async def test_load_options_are_closed_at_first_and_show_the_memory(desk: InspectorDesk) -> None:
    assert not desk.is_shown("inspector")
    desk.toggle()
    assert desk.is_shown("inspector.load.nothing")
    assert not desk.is_shown("inspector.load.reload")
    desk.click("inspector.close")
    assert not desk.is_shown("inspector")


async def test_measured_speed_is_shown_until_another_placement_is_chosen(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    assert "Measured" not in desk.text_of("inspector.memory.speed")
    report = desk.parts.engine.state.report
    assert report is not None
    desk.parts.services.meters.service._speeds.note(report.options, 100, 71.2)
    assert desk.text_of("inspector.memory.speed") == unbroken("Measured here: 71 tok/s")

    desk.parts.services.pending_load.change({"n_cpu_moe": 30})
    await desk.until(lambda: "Measured" not in desk.text_of("inspector.memory.speed"))


async def test_slider_updates_the_memory_bar(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    assert not desk.is_shown("inspector.load.reload"), "what is loaded is what was asked for"
    amount, segments = desk.text_of("inspector.memory.0.amount"), desk.find("inspector.memory.0.bar", VramBar).segments
    desk.slide("inspector.load.context.n_ctx.slider", 0)
    await desk.estimated(amount)
    assert desk.find("inspector.memory.0.bar", VramBar).segments != segments
    assert desk.text_of("inspector.memory.0.fit") == "fits"
    assert desk.find("inspector.load.context.n_ctx", QLineEdit).text() == "4096"
    assert desk.is_shown("inspector.load.context.n_ctx.mark")
    assert "Estimated" in desk.text_of("inspector.memory.source")
    assert desk.is_shown("inspector.load.reload")


async def test_values_decided_for_auto_are_shown(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.click("inspector.load.advanced")
    decided = desk.parts.engine.state.report.options
    assert desk.text_of("inspector.load.gpu.n_cpu_moe.auto") == f"Auto: {decided.n_cpu_moe} of 40"
    assert desk.text_of("inspector.load.context.n_ctx.auto") == f"Auto: {decided.n_ctx // 1024}K"
    assert desk.text_of("inspector.load.memory.type_k") == f"Auto: {decided.type_k}"
    assert desk.text_of("inspector.load.gpu.n_cpu_moe.flag") == "--n-cpu-moe"


async def test_conflicting_options_are_shown_and_cannot_be_loaded(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    service = desk.parts.services.pending_load
    service.change({"type_v": "q8_0"})
    desk.click("inspector.load.advanced")
    desk.find("inspector.load.memory.flash_attn.off", QAbstractButton).click()
    assert "needs flash attention" in desk.text_of("inspector.load.memory.type_v.error")
    assert not desk.is_shown("inspector.load.sentence"), "the reason is shown once"
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    n_loads = len(desk.loads)
    desk.parts.tasks.start(service.reload())
    service.reset("flash_attn")
    await desk.until(lambda: desk.find("inspector.load.reload", QAbstractButton).isEnabled())
    assert len(desk.loads) == n_loads


@pytest.mark.parametrize("length", ["2000000", "20000000"])
async def test_an_impossible_context_length_is_named_once_and_has_no_estimate(
    desk: InspectorDesk, model: Path, length: str
) -> None:
    await desk.open(model)
    field = desk.find("inspector.load.context.n_ctx", QLineEdit)
    field.setFocus()
    QTest.keyClicks(field, length)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert desk.is_shown("inspector.load.context.n_ctx.error")
    assert not desk.is_shown("inspector.load.sentence")
    assert "Context length" in desk.text_of("inspector.memory.source")
    assert not desk.is_shown("inspector.memory.0.fit")
    assert not desk.is_shown("inspector.memory.ask")
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    desk.click("inspector.load.context.n_ctx.auto")
    assert not desk.is_shown("inspector.load.context.n_ctx.error")
    assert field.text() == ""
    await desk.until(lambda: desk.is_shown("inspector.memory.0.fit"))


async def test_options_that_do_not_fit_show_the_missing_memory(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    service = desk.parts.services.pending_load
    for key, value in (("n_gpu_layers", "all"), ("n_cpu_moe", 0), ("type_k", "f32"), ("n_ctx", 262_144)):
        service.change({key: value})
    await desk.until(lambda: desk.text_of("inspector.memory.0.fit").endswith("GB over"))
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    desk.click("inspector.load.reset")
    await desk.until(lambda: desk.text_of("inspector.memory.0.fit") == "fits")
    assert not desk.is_shown("inspector.load.reload"), "nothing is left to apply"


async def test_the_memory_card_follows_the_reserve(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    amount = desk.text_of("inspector.memory.0.amount")
    desk.slide("inspector.load.memory.reserve_gb.slider", 8)
    assert desk.parts.services.settings.options.reserve_gb == 8
    await desk.estimated(amount)
    assert desk.text_of("inspector.memory.0.amount").endswith("of 16.0 GB")
    assert desk.is_shown("inspector.load.reload"), "less fits, so other options would be loaded"


async def test_what_needs_a_gpu_cannot_be_chosen_without_one(make: Callable[..., InspectorDesk]) -> None:
    for has_gpu in (False, True):
        desk = make(has_gpu=has_gpu)
        await desk.load_demo()
        desk.toggle()
        assert desk.find("inspector.load.pictures.vision.gpu", QAbstractButton).isEnabled() is has_gpu
        assert desk.find("inspector.load.pictures.vision.cpu", QAbstractButton).isEnabled()
        assert desk.find("inspector.load.memory.reserve_gb.slider", QSlider).isEnabled() is has_gpu
        for option in ("pictures.vision", "memory.reserve_gb"):
            assert desk.is_shown(f"inspector.load.{option}.remark") is not has_gpu


async def test_a_reload_waits_for_the_answer_and_keeps_the_chat(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.slide("inspector.load.context.n_ctx.slider", 2)
    await desk.until(lambda: desk.find("inspector.load.reload", QAbstractButton).isEnabled())
    desk.client.answers.append(ScriptedAnswer(text="One two three.", tokens_per_second=20.0))
    desk.send("Count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    before = desk.parts.engine.state.report
    desk.click("inspector.load.reload")
    await desk.until(lambda: "after the current answer" in desk.text_of("inspector.load.sentence"))
    assert desk.parts.chat.busy
    await desk.until(lambda: desk.parts.engine.state.report not in (before, None))
    assert desk.loads[-1].options.n_ctx == 16_384
    (turn,) = desk.parts.chat.conversation.turns
    assert turn.answer.text == "One two three."
    await desk.until(lambda: not desk.is_shown("inspector.load.reload"))


async def test_changed_options_are_kept_after_a_restart(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.slide("inspector.load.context.n_ctx.slider", 1)
    await desk.until(lambda: "n_ctx" in desk.parts.services.pending_load.pending.changed)
    await desk.parts.services.profiles.close()
    again = make()
    await again.load(model)
    assert again.loads[-1].options.n_ctx == 8_192
    assert again.parts.services.pending_load.pending.changed == {"n_ctx"}


async def test_a_saved_context_length_is_used_whatever_loads_the_model(make: Callable[[], InspectorDesk]) -> None:
    """At the first start, from the menu, from the banner, with another vision file, and after an idle unload."""
    desk = make()
    desk.parts.begin()
    await desk.until(lambda: desk.is_shown("start.demo"))
    desk.click("start.demo")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    desk.parts.services.pending_load.change({"n_ctx": 4_096})
    await desk.parts.services.profiles.close()  # it is in the file

    desk = make()
    desk.parts.begin()
    await desk.until(lambda: desk.is_shown("start.demo"))
    desk.click("start.demo")
    await desk.until(lambda: len(desk.loads) == 1)
    desk.parts.services.pending_load.change({"n_ctx": 5_120})
    installed(desk.window)["demo"].trigger()
    await desk.until(lambda: len(desk.loads) == 2)
    desk.parts.services.pending_load.change({"n_ctx": 6_144})
    desk.parts.window.load_mmproj(str(paths.demo_mmproj()))
    await desk.until(lambda: len(desk.loads) == 3)
    desk.client.load_result = LoadFailure("out_of_vram", "Not enough video memory", "It needs 21.4 GB.")
    desk.parts.window.load_demo()
    await desk.until(lambda: desk.is_shown("banner.restart"))
    desk.client.load_result = None
    desk.parts.services.pending_load.change({"n_ctx": 7_168})
    desk.click("banner.restart")
    await desk.until(lambda: len(desk.loads) == 5 and desk.parts.engine.state.phase is Phase.READY)
    await desk.parts.services.idle_unload._engine.unload_idle()
    desk.parts.services.pending_load.change({"n_ctx": 8_192})
    await desk.ask("Still there?")
    assert [load.options.n_ctx for load in desk.loads] == [4_096, 5_120, 6_144, 6_144, 7_168, 8_192]


async def test_a_vision_file_that_was_set_survives_a_reload_and_another_change(
    desk: InspectorDesk, tmp_path: Path
) -> None:
    await desk.load(paths.demo_model())
    pending, profiles = desk.parts.services.pending_load, desk.parts.services.profiles
    found = pending.pending.requested
    assert found is not None
    other = shutil.copy(paths.demo_mmproj(), tmp_path / "other-mmproj.gguf")
    pending.change({"mmproj": str(other)})
    await desk.until(lambda: pending.pending.needs_reload)
    await pending.reload()
    assert "mmproj" in pending.pending.changed
    pending.change({"n_ctx": 4096})
    assert profiles.changes(str(paths.demo_model())) == {"mmproj": str(other), "n_ctx": 4096}
    pending.reset("mmproj")
    assert profiles.changes(str(paths.demo_model())) == {"n_ctx": 4096}
    assert pending.pending.requested == msgspec.structs.replace(found, n_ctx=4096)


async def test_command_is_copied_and_shown_on_the_engine_page(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.parts.services.pending_load.change({"n_ctx": 16_384})
    text = desk.find("inspector.command.text", QPlainTextEdit)
    await desk.until(lambda: "--ctx-size 16384" in text.toPlainText())
    desk.find("inspector.command.copy", QAbstractButton).click()
    assert QGuiApplication.clipboard().text() == text.toPlainText()
    desk.window.show_page("engine")
    assert text.toPlainText() == desk.find("engine.command.text", QPlainTextEdit).toPlainText()
    desk.find("inspector.command.ollama", QAbstractButton).click()
    assert "PARAMETER num_ctx 16384" in text.toPlainText()


async def test_the_command_says_what_llama_server_makes_of_penalties(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    card = CommandCard("test.command")
    pending = desk.parts.services.pending_load.pending
    card.show_pending(pending, GenerationOptions(presence_penalty=1.5))
    note = card.findChild(QLabel, "test.command.difference")
    assert note is not None
    assert "64 tokens" in note.text()
    card.show_kind("ollama")
    assert not note.text()
    card.show_kind("llama-server")
    card.show_pending(pending, GenerationOptions(presence_penalty=0.0))
    assert not note.text()


async def test_search_finds_a_flag_by_its_llama_cpp_name(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    assert not desk.has("inspector.load.gpu.tensor_split")
    desk.find("inspector.load.search", QLineEdit).setText("tensor-split")
    assert desk.is_shown("inspector.load.gpu.tensor_split.row")
    assert not desk.is_shown("inspector.load.memory.aim.row")
    desk.find("inspector.load.search", QLineEdit).clear()
    assert desk.is_shown("inspector.load.memory.aim.row")
    assert not desk.is_shown("inspector.load.gpu.tensor_split.row")


async def test_the_context_slider_reaches_what_yarn_reaches_and_says_the_cost(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    slider = desk.find("inspector.load.context.n_ctx.slider", QSlider)
    assert not desk.is_shown("inspector.load.context.n_ctx.remark")
    desk.slide("inspector.load.context.n_ctx.slider", slider.maximum())
    assert desk.find("inspector.load.context.n_ctx", QLineEdit).text() == "1010000"
    assert "short prompts" in desk.text_of("inspector.load.context.n_ctx.remark")
    await desk.until(lambda: "--rope-scale 4" in desk.find("inspector.command.text", QPlainTextEdit).toPlainText())
    desk.slide("inspector.load.context.n_ctx.slider", slider.maximum() - 2)
    await desk.until(lambda: not desk.is_shown("inspector.load.context.n_ctx.remark"))


async def test_search_knows_spellings_of_flags_and_says_why_one_has_no_effect(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    search = desk.find("inspector.load.search", QLineEdit)

    def shown() -> set[str]:
        rows = desk.find("inspector.load", QWidget).findChildren(SettingRow)
        return {row.entry.key for row in rows if row.isVisible()}

    for query, keys in (
        ("-c", {"n_ctx"}),
        ("-ctk q8_0", {"type_k"}),
        ("-fa", {"flash_attn"}),
        ("num_ctx", {"n_ctx"}),
        ("exps=CPU", {"override_tensor", "n_cpu_moe"}),
        ("--gpu-memory-utilization", {"reserve_gb"}),
    ):
        search.setText(query)
        assert shown() == keys, query
    search.setText("--parallel 4")
    assert shown() == set()
    assert "one chat at a time" in desk.text_of("inspector.load.search.note")
    search.setText("--top-k")
    assert "tab Sampling" in desk.text_of("inspector.load.search.note")
    search.setText("xyzzy")
    assert "xyzzy" in desk.text_of("inspector.load.search.note")
    search.setText("threads")
    assert {"n_threads", "n_threads_batch"} <= shown()
    assert not desk.is_shown("inspector.load.search.note")


async def test_the_vllm_command_says_whether_a_format_fits_the_card(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.parts.services.pending_load.state.update(base_repo="Qwen/Qwen3.5-35B-A3B")  # as for a file of the catalog
    desk.click("inspector.command.vllm")
    text = desk.find("inspector.command.text", QPlainTextEdit)
    await desk.until(lambda: "Qwen/Qwen3.5-35B-A3B-GPTQ-Int4" in text.toPlainText())
    assert "No format from Qwen fits" in text.toPlainText()
    assert "--enable-prefix-caching" in text.toPlainText()
