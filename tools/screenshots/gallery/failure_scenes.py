"""What goes wrong: a question that is too long, a crash, no vision, a load that failed, a report of a crash."""

from pathlib import Path

import msgspec

from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.engine.protocol import RequestFailed
from qwendesk.help.crash_reports import CrashReports
from qwendesk.help.view.crash_notices import CrashNotices
from qwendesk.widgets.notice import Notice
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS
from tools.screenshots.gallery.made_up_chats import picture
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle


async def failures(room: Room) -> None:
    room.service.new_chat()
    full = RequestFailed(
        id=0, title="Too long", sentence="This fills about 131,310 tokens, but the context holds 131,072. Shorten it, "
        "start a new chat, or load the model with a longer context.",
    )  # fmt: skip
    await room.ask("How long is this?", ScriptedAnswer(text="", fail=full))
    death = EngineExit(-9, "The engine stopped unexpectedly, probably because memory ran out.", ("last words",))
    await room.ask("And now?", ScriptedAnswer(reasoning="Well.", text="As I was about to say", fail=death))
    await room.shoot("error-crash")
    await room.load()
    room.service.new_chat()
    await room.ask("Two sentences?", ScriptedAnswer(text="One. Two", stop_reason="context_full"))
    room.client.report = msgspec.structs.replace(room.client.report, can_see=False)
    await room.load()
    room.page.attachments.attach(PastedContent(files=(Path(picture(room.files / "p.png", "plane", (400, 300)).path),)))
    await settle()
    await room.shoot("error-no-vision")
    room.client.report = msgspec.structs.replace(room.client.report, can_see=True)
    room.page.composer.show_notice("")
    lines = ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: cudaMalloc failed",)
    room.client.load_result = LoadFailure(
        "out_of_vram", "The model does not fit into the graphics memory",
        "It needs 1.0 GB more than is free on NVIDIA GeForce RTX 3090.", lines,
    )  # fmt: skip
    room.parts.tasks.start(room.parts.engine.load(OPTIONS))
    await settle()
    await room.shoot("error-load-retry")
    room.client.load_result = LoadFailure("missing_file", "The model file is gone", "It is not in D:\\Models any more.")
    room.parts.tasks.start(room.parts.engine.load(OPTIONS))
    await settle()
    room.service.new_chat()
    await room.shoot("error-load-empty")
    room.client.load_result = None
    await room.load()


async def crash(room: Room) -> None:
    """The notice after a crash, and the reports it leads to."""
    reports = CrashReports(room.files / "crashes", room.files / "window.log")
    reports.begin()
    reports.save_engine_crash(EngineExit(-11, "The engine crashed.", ("llama_decode: failed", "GGML_ASSERT")), None)
    notices = CrashNotices(room.window, room.parts.engine.observed, reports)
    notices.notice_asked.connect(room.window.add_notice)
    notices.offer()
    await room.shoot("crash-notice")
    await room.shoot("crash-reports", notices.show_reports)
    for notice in room.window.findChildren(Notice, "crash"):
        notice.end()
    reports.end()
