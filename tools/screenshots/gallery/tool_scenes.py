"""Tools: the menu, a folder and its dialog, an answer with calls and citations, a source, a call that asks."""

from pathlib import Path

import msgspec

from qwendesk.core.messages import ToolCall
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.gaming_pc import REPORT
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle, until

_LOOP = "".join(f"# {number}\n" for number in range(1, 60)) + "def run(frame_time):\n    step(1/60)\n    draw()\n"
_ANSWER = """The loop calls `step(1/60)` once per frame [1], so at 144 Hz the physics runs 2.4 times as often.

```svg
<svg width="90" height="40"><rect width="90" height="40" fill="teal"/></svg>
```
"""


async def tools(room: Room) -> None:
    template = msgspec.structs.replace(REPORT.template, tools=True, call_dialect="xml")
    room.client.report = msgspec.structs.replace(REPORT, template=template)
    await room.load()
    folder = _boat_game(room.files)
    room.service.new_chat()
    picker = room.page.tool_picker
    picker.add_folder(str(folder))
    settings = room.service.settings
    room.service.change_settings(
        msgspec.structs.replace(settings, tools=(*settings.tools, "calculate", "current_time", "edit_file"))
    )
    states = room.parts.services.folder_indexes.states
    await until(lambda: states.value[str(folder)].phase == "ready")
    await room.shoot("tools-menu", lambda: room.click("composer.tools"))
    await room.shoot("tools-folder", lambda: room.click(f"composer.folder.{folder}"))
    room.client.answers = [
        ScriptedAnswer(reasoning="I search.", calls=(ToolCall("search_files", '{"query": "step"}'),)),
        ScriptedAnswer(calls=(ToolCall("calculate", '{"expression": "144 / 60"}'),)),
        ScriptedAnswer(text=_ANSWER),
    ]
    room.page.ask("Why does collision only break at 144 Hz?")
    await until(lambda: bool(room.service.conversation.turns) and not room.service.busy)
    await settle()
    turn = room.service.conversation.turns[0].id
    await room.shoot("tools-answer")
    await room.shoot("tools-source", lambda: room.thread.intents.sources.opened.emit(turn, 1))
    change = '{"path": "loop.py", "old": "step(1/60)", "new": "step(min(frame_time, 1/30))"}'
    room.client.answers = [ScriptedAnswer(calls=(ToolCall("edit_file", change),)), ScriptedAnswer(text="Done.")]
    room.page.ask("Fix it")
    toolbox = room.parts.services.toolbox
    await until(lambda: toolbox.waiting.value is not None)
    await settle()
    await room.shoot("tools-consent")
    request = toolbox.waiting.value
    assert request is not None
    toolbox.decide(request, "refuse")
    await until(lambda: not room.service.busy)
    room.client.report = REPORT
    room.service.new_chat()
    await room.load()


def _boat_game(files: Path) -> Path:
    folder = files / "boat-game"
    folder.mkdir(exist_ok=True)
    (folder / "notes.txt").write_text("Wind\n\nBoats drift 10 m.\n", encoding="utf-8")
    (folder / "loop.py").write_text(_LOOP, encoding="utf-8")
    (folder / "scan.pdf").write_bytes(b"%PDF-1.4 nothing")
    return folder
