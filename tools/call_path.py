"""Print each call of one question, from the Enter key to the line on the worker's pipe: `python -m tools.call_path`.

The window is the real one, drawn into memory, on the demo model and in folders of its own. Where a task is started, the
path goes on in the task. Functions of Python and Qt are left out.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from tests.user_folders import user_variables

PACKAGE = Path(__file__).resolve().parent.parent / "qwendesk"
QUESTION = "What is a quant?"


Calls = list[tuple[str, str]]
"""Functions, outermost first: the file below qwendesk/ and the name."""


def main() -> int:
    """Print the path, and how many functions and files it has. Returns 0."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(user_variables(Path(folder)), QT_QPA_PLATFORM="offscreen")
        (Path(folder) / "runtime").mkdir(mode=0o700)
        path = trace_question()
    for file, name in path:
        print(f"{file:<50}{name}")
    print(f"{len(path)} functions in {len({file for file, _ in path})} files")
    return 0


def trace_question() -> Calls:
    """Send a question in a window of its own. Return the functions between the key and the pipe, outermost first."""
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415 - the platform is chosen before

    from qwendesk.app.event_loop import EventLoop  # noqa: PLC0415
    from qwendesk.widgets.theme_keeper import ThemeKeeper  # noqa: PLC0415

    app = QApplication(["qwendesk"])
    keeper = ThemeKeeper(app, "dark")
    try:
        with asyncio.Runner(loop_factory=lambda: EventLoop(app)) as runner:
            return runner.run(_ask())
    finally:
        keeper.deleteLater()


async def _ask() -> Calls:
    from qwendesk.app.parts import build  # noqa: PLC0415
    from qwendesk.engine.client import WorkerClient  # noqa: PLC0415
    from qwendesk.engine.process import WorkerProcess  # noqa: PLC0415
    from tests.window_desk import Desk  # noqa: PLC0415

    found: asyncio.Future[Calls] = asyncio.get_running_loop().create_future()
    started_by: dict[Any, Calls] = {}
    send = WorkerProcess.send

    def calls_so_far() -> Calls:
        task = asyncio.current_task()
        return [*(started_by.get(task.get_coro(), []) if task is not None else []), *_stack()]

    def make_task(loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        started_by[work] = calls_so_far()
        return asyncio.Task(work, loop=loop, **named)

    def traced_send(self: WorkerProcess, line: bytes) -> None:
        if QUESTION.encode() in line and not found.done():
            found.set_result([*calls_so_far(), ("engine/process.py", "WorkerProcess.send")])
        send(self, line)

    asyncio.get_running_loop().set_task_factory(make_task)
    WorkerProcess.send = traced_send  # type: ignore[method-assign]
    parts = build(WorkerClient())
    try:
        desk = Desk(parts, None)  # type: ignore[arg-type]
        desk.window.show()
        await desk.load_demo()
        desk.send(QUESTION)
        return await found
    finally:
        WorkerProcess.send = send  # type: ignore[method-assign]
        asyncio.get_running_loop().set_task_factory(None)
        await parts.close()


def _stack() -> Calls:
    """Return the functions of the package that run now, outermost first."""
    found: Calls = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE) and file.name not in ("event_loop.py", "__main__.py"):
            found.append((file.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))
        frame = frame.f_back
    return found[::-1]


if __name__ == "__main__":
    sys.exit(main())
