"""The Load tab as a person uses it: a choice reprices, what cannot be is not shown, a reload keeps the chat."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QAbstractButton, QLabel

from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.translation import unbroken
from qwendesk.core.units import show_bytes, show_duration, show_tokens
from qwendesk.engine.state import Phase
from qwendesk.engines.view.load_options.command_card import CommandCard
from qwendesk.engines.view.load_options.load_text import shown_devices
from qwendesk.widgets.actions import installed
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


async def test_a_longer_chat_is_chosen_in_words_and_undone(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    assert not desk.is_shown("inspector.load.reload"), "what is loaded is what was asked for"
    auto = desk.text_of("inspector.load.n_ctx")
    assert auto == f"Auto · {show_tokens(desk.parts.engine.state.report.options.n_ctx)}"
    amount, segments = desk.text_of("inspector.memory.0.amount"), desk.find("inspector.memory.0.bar", VramBar).segments
    desk.choices("n_ctx")["4K · 10 pages"].trigger()
    await desk.estimated(amount)
    assert desk.find("inspector.memory.0.bar", VramBar).segments != segments
    assert desk.text_of("inspector.memory.0.fit") == "fits"
    assert desk.text_of("inspector.load.n_ctx") == "4K"
    assert desk.text_of("inspector.load.n_ctx.note").startswith("About 10 pages.")
    assert "Estimated" in desk.text_of("inspector.memory.source")
    assert desk.is_shown("inspector.load.reload")

    desk.click("inspector.load.n_ctx.undo")
    assert desk.text_of("inspector.load.n_ctx") == "Auto", "what it takes isn't known yet"
    assert desk.window.focusWidget() is desk.find("inspector.load.n_ctx", QAbstractButton), "its arrow is gone"
    await desk.until(lambda: desk.text_of("inspector.load.n_ctx") == auto)
    assert not desk.is_shown("inspector.load.reload")


async def test_the_longest_chat_is_what_yarn_reaches_and_says_the_cost(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    choices = desk.choices("n_ctx")
    assert list(choices)[-2:] == ["1M · 2,500 pages", "Set exactly…"]
    choices["1M · 2,500 pages"].trigger()
    assert "short prompts" in desk.text_of("inspector.load.n_ctx.note")
    desk.choices("n_ctx")["256K · 660 pages"].trigger()
    assert "short prompts" not in desk.text_of("inspector.load.n_ctx.note")


async def test_chat_memory_sets_both_types_of_the_cache(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    assert desk.text_of("inspector.load.type_k") == "Auto · Half size", "so that the longest chat fits"
    desk.choices("type_k")["Exact · f16"].trigger()
    requested = desk.parts.services.pending_load.pending.requested
    assert requested is not None
    assert (requested.type_k, requested.type_v) == ("f16", "f16")
    assert desk.text_of("inspector.load.type_k") == "Exact · f16"
    await desk.until(lambda: "saves" in desk.text_of("inspector.load.type_k.note"))


async def test_without_a_gpu_and_pictures_their_controls_are_not_there(make: Callable[..., InspectorDesk]) -> None:
    for has_gpu in (False, True):
        desk = make(has_gpu=has_gpu)
        await desk.load_demo()
        desk.toggle()
        await desk.until(lambda desk=desk: desk.is_shown("inspector.memory.0"))
        assert ("GPU" in desk.choices("vision")) is has_gpu
        assert desk.is_shown("inspector.load.n_gpu_layers") is has_gpu
        assert desk.is_shown("inspector.load.models.reserve_gb.slider") is has_gpu
        desk.parts.services.pending_load.change({"mmproj": ""})
        assert not desk.is_shown("inspector.load.vision")


async def test_options_that_do_not_fit_show_the_missing_memory(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    service = desk.parts.services.pending_load
    for key, value in (("n_gpu_layers", "all"), ("n_cpu_moe", 0), ("type_k", "f32"), ("n_ctx", 262_144)):
        service.change({key: value})
    await desk.until(lambda: desk.text_of("inspector.memory.0.fit").endswith("GB over"))
    assert not desk.find("inspector.load.reload", QAbstractButton).isEnabled()
    assert desk.text_of("inspector.load.sentence").startswith("Needs ")
    assert desk.text_of("inspector.load.n_gpu_layers") == "All on the GPU"
    desk.click("inspector.load.undo")
    await desk.until(lambda: desk.text_of("inspector.memory.0.fit") == "fits")
    assert not desk.is_shown("inspector.load.reload"), "nothing is left to apply"
    assert not service.pending.changed


async def test_what_the_engine_needs_beside_the_model_is_told(desk: InspectorDesk, model: Path) -> None:
    """The Engine page's bar counts that as other memory."""
    await desk.open(model)
    plan = desk.parts.services.pending_load.pending.plan
    assert plan is not None
    device = shown_devices(plan)[0]
    own = show_bytes(device.other_bytes)
    assert desk.text_of("inspector.memory.source").endswith(f"{own} of it is for the engine itself.")
    tip = desk.find("inspector.memory.0.bar", VramBar).toolTip().splitlines()
    assert tip[-1] == f"The engine itself: {own}"
    assert f"Buffers: {show_bytes(device.compute_bytes)}" in tip


async def test_the_memory_card_follows_the_reserve(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    amount = desk.text_of("inspector.memory.0.amount")
    desk.slide("inspector.load.models.reserve_gb.slider", 8)
    assert desk.parts.services.settings.options.reserve_gb == 8
    await desk.estimated(amount)
    assert desk.text_of("inspector.memory.0.amount").endswith("of the free 16.0 GB")
    assert desk.is_shown("inspector.load.reload"), "less fits, so other options would be loaded"


async def test_a_reload_waits_for_the_answer_and_keeps_the_chat(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.choices("n_ctx")["16K · 41 pages"].trigger()
    await desk.until(lambda: desk.text_of("inspector.load.sentence").startswith("Fits. About "))
    seconds = desk.parts.engine.state.report.load_s
    assert desk.text_of("inspector.load.reload") == f"Reload to apply · {show_duration(seconds)}"
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


async def test_a_long_word_for_reload_is_not_cut(desk: InspectorDesk, model: Path) -> None:
    """In German, with the time, it is wider than the panel beside "Undo"."""
    await desk.open(model)
    desk.choices("n_ctx")["16K · 41 pages"].trigger()
    reload, undo = (desk.find(f"inspector.load.{name}", QAbstractButton) for name in ("reload", "undo"))
    await desk.until(lambda: reload.isVisible() and undo.isVisible())
    for text in ("Reload", "Zum Anwenden neu laden · 12,3 s"):
        reload.setText(text)
        await desk.until(lambda: reload.width() >= reload.minimumSizeHint().width())
        await desk.until(lambda: not reload.geometry().intersects(undo.geometry()))
    assert reload.y() != undo.y(), "there is no room beside it"


async def test_changed_options_are_kept_after_a_restart(make: Callable[[], InspectorDesk], model: Path) -> None:
    desk = make()
    await desk.open(model)
    desk.choices("n_ctx")["8K · 20 pages"].trigger()
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
