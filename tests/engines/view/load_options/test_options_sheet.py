"""The sheet of all load options: an expert finds each by its flag, and what can't be had here isn't shown."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QListWidget, QPlainTextEdit, QWidget

from qwendesk.widgets.actions import installed
from tests.engines.view.load_options.inspector_desk import InspectorDesk
from tools.hollow_model import write_hollow


async def test_it_opens_by_one_command_and_what_is_typed_is_searched(desk: InspectorDesk, model: Path) -> None:
    """Two actions for an expert: the shortcut, and the flag."""
    await desk.load(model)
    installed(desk.window)["load_options"].trigger()
    await desk.sheet_built()
    search = desk.find("options.search", QLineEdit)
    await desk.until(search.hasFocus)
    for query, keys in (
        ("n_cpu_moe", {"n_cpu_moe"}),
        ("ubatch", {"n_ubatch"}),
        ("kv cache", {"type_k", "type_v", "offload_kqv"}),
        ("cache-type", {"type_k", "type_v"}),
        ("-c", {"n_ctx"}),
        ("-ctk q8_0", {"type_k"}),
        ("-fa", {"flash_attn"}),
        ("num_ctx", {"n_ctx"}),
        ("exps=CPU", {"override_tensor", "n_cpu_moe"}),
        ("--gpu-memory-utilization", {"reserve_gb"}),
    ):
        search.clear()
        QTest.keyClicks(search, query)
        assert keys <= desk.shown_options(), query
        assert query == "kv cache" or desk.shown_options() == keys, query
    search.setText("--parallel 4")
    assert desk.shown_options() == set()
    assert "one chat at a time" in desk.text_of("options.note")
    search.setText("--top-k")
    assert "tab Sampling" in desk.text_of("options.note")
    search.setText("xyzzy")
    assert "xyzzy" in desk.text_of("options.note")
    assert desk.text_of("options.found") == "0 found"


async def test_auto_is_a_word_and_a_number_is_the_users(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    await desk.open_sheet("n_ctx")
    decided = desk.parts.engine.state.report.options
    field = desk.find("options.context.n_ctx", QLineEdit)
    assert (field.text(), field.placeholderText()) == ("", "Auto")
    assert desk.text_of("options.context.n_ctx.auto") == f"{decided.n_ctx // 1024}K"
    assert desk.text_of("options.gpu.n_cpu_moe.auto") == f"{decided.n_cpu_moe} of 40"
    assert desk.text_of("options.chat.type_k.auto") == decided.type_k
    assert desk.text_of("options.speed.n_batch.auto") == "2048 tokens"

    QTest.keyClicks(field, "400000")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert desk.text_of("inspector.load.n_ctx") == "400,000", "the panel shows the whole number"
    assert desk.text_of("options.context.n_ctx.auto") == "", "what Auto would take isn't known now"
    field.clear()
    field.setModified(True)
    QTest.keyClick(field, Qt.Key.Key_Return)
    requested = desk.parts.services.pending_load.pending.requested
    assert requested is not None
    assert requested.n_ctx == 0
    assert field.placeholderText() == "Auto"


async def test_opened_for_an_option_it_has_the_focus_there(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    for key, name in (("n_ctx", "options.context.n_ctx"), ("n_gpu_layers", "options.gpu.n_gpu_layers")):
        desk.choices(key)["Set exactly…"].trigger()
        await desk.sheet_built()
        await desk.until(desk.find(name, QWidget).hasFocus)
        assert desk.text_of(f"{name}.label")
        desk.click("options.done")
        await desk.until(lambda: not desk.has("options"))


async def test_flags_are_shown_on_request(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    await desk.open_sheet()
    assert not desk.is_shown("options.gpu.n_cpu_moe.flag")
    desk.click("options.flags")
    assert desk.text_of("options.gpu.n_cpu_moe.flag") == "--n-cpu-moe"
    assert desk.is_shown("options.gpu.n_cpu_moe.flag")


async def test_groups_count_what_was_found_and_show_only_theirs(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.parts.services.pending_load.change({"n_ctx": 4096})
    await desk.open_sheet()
    groups = desk.find("options.groups", QListWidget)
    assert desk.text_of("options.count.changed") == "1"
    groups.setCurrentRow(1)
    assert desk.shown_options() == {"n_ctx"}
    groups.setCurrentRow(0)
    desk.find("options.search", QLineEdit).setText("threads")
    assert desk.text_of("options.count.speed") == str(len(desk.shown_options()))
    assert desk.text_of("options.count.drafts") == "0"


async def test_what_this_model_and_this_pc_cannot_have_is_hidden_until_asked_for(
    make: Callable[..., InspectorDesk], tmp_path: Path
) -> None:
    """A dense model without a vision file, on a PC without a GPU."""
    desk = make(has_gpu=False)
    await desk.open(write_hollow(tmp_path / "Qwen3.6-27B-Q4_K_M.gguf", "27b"))
    await desk.open_sheet()
    missing = {"n_cpu_moe", "n_gpu_layers", "offload_kqv", "split_mode", "reserve_gb", "vision", "image_max_tokens"}
    assert not missing & desk.shown_options()
    assert {"type_k", "n_threads", "mmproj"} <= desk.shown_options()
    assert "can't be used by this model or this PC" in desk.text_of("options.unusable")
    desk.find("options.search", QLineEdit).setText("-ncmoe")
    assert desk.text_of("options.unusable").startswith("1 more")
    desk.click("options.unusable.show")
    assert desk.shown_options() == {"n_cpu_moe"}
    desk.find("options.search", QLineEdit).clear()
    assert missing <= desk.shown_options()


async def test_conflicting_options_are_named_and_cannot_be_loaded(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    service = desk.parts.services.pending_load
    service.change({"type_v": "q8_0"})
    service.change({"flash_attn": "off"})
    await desk.open_sheet()
    for place in ("options", "inspector.load"):
        assert "needs flash attention" in desk.text_of(f"{place}.sentence")
        assert not desk.find(f"{place}.reload", QAbstractButton).isEnabled()
    n_loads = len(desk.loads)
    desk.parts.tasks.start(service.reload())
    service.reset("flash_attn")
    await desk.until(lambda: desk.find("options.reload", QAbstractButton).isEnabled())
    assert len(desk.loads) == n_loads
    desk.click("options.reset")
    assert not service.pending.changed


@pytest.mark.parametrize("length", ["2000000", "20000000"])
async def test_an_impossible_context_length_cannot_be_loaded(desk: InspectorDesk, model: Path, length: str) -> None:
    await desk.open(model)
    await desk.open_sheet("n_ctx")
    field = desk.find("options.context.n_ctx", QLineEdit)
    QTest.keyClicks(field, length)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert desk.find("options.sentence", QLabel).property("kind") == "error"
    assert not desk.find("options.reload", QAbstractButton).isEnabled()
    field.clear()
    field.setModified(True)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert not desk.is_shown("options.context.n_ctx.error")
    await desk.until(lambda: not desk.is_shown("options.sentence"))


async def test_the_command_line_is_copied_and_is_that_of_the_engine_page(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.parts.services.pending_load.change({"n_ctx": 16_384})
    await desk.open_sheet()
    desk.click("options.command_line")
    text = desk.find("options.command.text", QPlainTextEdit)
    await desk.until(lambda: "--ctx-size 16384" in text.toPlainText())
    desk.click("options.command.copy")
    assert QGuiApplication.clipboard().text() == text.toPlainText()
    desk.window.show_page("engine")
    assert text.toPlainText() == desk.find("engine.command.text", QPlainTextEdit).toPlainText()
    desk.click("options.command.ollama")
    assert "PARAMETER num_ctx 16384" in text.toPlainText()
    desk.parts.services.pending_load.change({"n_ctx": 1_010_000})
    desk.click("options.command.llama-server")
    await desk.until(lambda: "--rope-scale 4" in text.toPlainText())

    desk.parts.services.pending_load.state.update(base_repo="Qwen/Qwen3.5-35B-A3B")  # as for a file of the catalog
    desk.click("options.command.vllm")
    await desk.until(lambda: "Qwen/Qwen3.5-35B-A3B-GPTQ-Int4" in text.toPlainText())
    assert "No format from Qwen fits" in text.toPlainText()
    assert "--enable-prefix-caching" in text.toPlainText()


async def test_a_narrow_sheet_keeps_every_option_reachable(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.window.resize(560, 640)
    installed(desk.window)["load_options"].trigger()
    await desk.sheet_built()
    assert desk.find("options", QWidget).width() < 560
    assert not desk.is_shown("options.groups")
    assert "n_threads" in desk.shown_options()


async def test_set_exactly_leads_to_the_group_of_the_control(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.choices("type_k")["Set exactly…"].trigger()
    await desk.sheet_built()
    assert {"type_k", "type_v"} <= desk.shown_options() <= {"type_k", "type_v", "offload_kqv", "swa_full"}
