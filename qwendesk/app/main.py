"""`qwendesk` without a command: the window on Qt's event loop, its options, its log, and the end in order."""

import argparse
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import qasync
from PySide6.QtWidgets import QApplication, QMessageBox

from qwendesk.app.crash_part import CrashPart, safe_notice
from qwendesk.app.parts import Parts, build
from qwendesk.app.window_part import restore_window, window_state
from qwendesk.core.paths import log_folder
from qwendesk.services.crash_reports import CrashReports
from qwendesk.services.engine.engines import engines_here
from qwendesk.services.engine.safe_mode import decide_safely
from qwendesk.services.running_mark import mark_as_running
from qwendesk.services.settings import SettingsService
from qwendesk.services.window_state import read_window_state, write_window_state
from qwendesk.ui.demo_tour import DemoTour
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.opening import OpenedBySystem
from qwendesk.ui.frame.single_instance import SingleInstance
from qwendesk.ui.kit.language import show_language
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeChoice, ThemeKeeper
from qwendesk.ui.thread.highlight import warm_up

_logger = logging.getLogger(__name__)


def keep_collector_quick() -> None:
    """Take everything that exists now out of garbage collection: it stays until the end anyway.

    Looking at it again each time costs 25 to 30 ms, which a streaming answer would show.
    """
    gc.collect()
    gc.freeze()


def main(argv: Sequence[str]) -> int:
    """Open the window on the last model, or on the first start.

    Returns the exit code: 0, or 1 when a demo tour was not answered.
    """
    options = _arguments(argv)
    mark_as_running()
    _log_to_file()
    app = QApplication.instance() or QApplication([sys.argv[0]])
    if not isinstance(app, QApplication):
        raise TypeError("another kind of Qt application runs already")
    app.setApplicationName("QwenDesk")
    app.setDesktopFileName("qwendesk")
    app.setQuitOnLastWindowClosed(False)
    instance = None if options.demo_tour else SingleInstance()
    if instance is not None and not instance.begin(options.files):
        return 0  # the window that is there takes the files and comes to the front
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        return runner.run(_run(app, options, instance))


async def _run(app: QApplication, options: argparse.Namespace, instance: SingleInstance | None) -> int:
    keeper = ThemeKeeper(app, options.theme or "system")
    engines, settings = engines_here(is_safe=options.safe), SettingsService(is_safe=options.safe)
    show_language(app, settings.options.language)
    decide = decide_safely if options.safe else None
    parts = build(engines.client(), keeper, engines=engines, settings=settings, decide=decide)
    parts.settings_page.look.apply(with_theme=options.theme is None)
    closed = asyncio.Event()
    parts.window.closed.connect(closed.set)
    restore = report_errors(parts.window, closed.set)
    keep_collector_quick()
    remembers = not options.demo_tour and not options.safe
    reports = None if options.demo_tour else CrashReports()

    def remember_window() -> None:
        if remembers:
            write_window_state(window_state(parts.window, parts.around.finder, parts.around.tray))

    def end_at_once() -> None:
        remember_window()
        if reports is not None:
            reports.end()

    # When the person logs off, Windows ends the process right after this signal.
    app.aboutToQuit.connect(end_at_once)
    try:
        if remembers:
            restore_window(parts.window, parts.around.finder, parts.around.tray, read_window_state())
        parts.window.show()
        if reports is not None:
            reports.begin()
            CrashPart(keeper, parts.window, parts.engine, reports).offer()
        # Begun before anything can ask for a worker: that waits for the choice.
        choice = parts.tasks.start(engines.choose(settings.options.engine))
        _begin(app, parts, instance, options, keeper)
        if not await _is_done_first(choice, closed):
            return 1 if options.demo_tour else 0
        if options.demo_tour:
            return await _tour(parts, options.screenshot)
        if not options.safe:
            parts.begin()
        await closed.wait()
        return 0
    finally:
        app.aboutToQuit.disconnect(end_at_once)
        if instance is not None:
            instance.end()
        remember_window()
        await parts.close()
        restore()
        if reports is not None:
            reports.end()
        _delete_if_wanted(parts)


def _begin(
    app: QApplication,
    parts: Parts,
    instance: SingleInstance | None,
    options: argparse.Namespace,
    keeper: ThemeKeeper,
) -> None:
    """All that goes on while engines are tried; whatever needs a worker waits for the choice."""
    if options.safe:
        parts.window.add_notice(safe_notice(keeper))
    if options.demo_tour:
        parts.chats.leave_no_trace()
    parts.start()
    parts.tasks.start(asyncio.to_thread(warm_up))
    OpenedBySystem(app, parts.around.opening)
    if instance is not None:
        instance.asked.connect(parts.around.handed_over)
        parts.around.open_files([path.absolute() for path in options.files])


async def _is_done_first(work: asyncio.Task[Any], closed: asyncio.Event) -> bool:
    """Whether `work` ended, well or not, before the window was closed."""
    waiting = asyncio.create_task(closed.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return not closed.is_set()


async def _tour(parts: Parts, screenshot: Path | None) -> int:
    parts.engine.load_demo()
    tour = DemoTour(parts.window.chat_page, parts.engine, parts.chat)
    answered = await tour.run()
    if screenshot is not None:
        tour.save_screenshot(parts.window, screenshot)
    return 0 if answered else 1


def _delete_if_wanted(parts: Parts) -> None:
    """ "Delete everything" is carried out when nothing of the app runs any more and its log is closed."""
    privacy = parts.around.privacy
    if not privacy.is_deletion_wanted:
        return
    logging.shutdown()
    logging.getLogger().handlers.clear()
    troubles = privacy.carry_out(parts.models.network.connection.host)
    if troubles:
        QMessageBox.warning(None, tr("Not everything could be deleted"), "\n".join(troubles))


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    themes: tuple[ThemeChoice, ...] = ("dark", "light", "contrast", "system")
    parser = argparse.ArgumentParser(prog="qwendesk", description="Run Qwen 3.5 and 3.6 at home, in a window.")
    parser.add_argument("--theme", choices=themes, help="the window's colours (default: as in the settings)")
    parser.add_argument(
        "--demo-tour",
        action="store_true",
        help="ask the built-in demo one question and one about a picture, print the answers, and end",
    )
    parser.add_argument("--safe", action="store_true", help="start with defaults, the processor alone and no model")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="with --demo-tour: save the window as a PNG")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="a model to offer, or files for the question"
    )
    options = parser.parse_args(argv)
    if options.files and options.demo_tour:
        parser.error("--demo-tour takes no files")
    if options.screenshot is not None and not options.demo_tour:
        parser.error("--screenshot needs --demo-tour")
    return options


def _log_to_file() -> None:
    """Warnings and errors go to a file of this user, never message texts."""
    try:
        log_folder().mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(log_folder() / "window.log", encoding="utf-8", delay=True)
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def report_errors(window: MainWindow, stop: Callable[[], None]) -> Callable[[], None]:
    """Show what nobody caught in the banner instead of dying; end in order on a signal. Returns what undoes it."""
    loop = asyncio.get_running_loop()
    hook_before = sys.excepthook

    def report(error: BaseException) -> None:
        _logger.error("Nobody caught this", exc_info=error)
        window.report(tr("Something went wrong"), f"{type(error).__name__}: {error}")

    def hook(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            stop()
        else:
            report(error)

    def on_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        report(context.get("exception") or RuntimeError(context["message"]))

    sys.excepthook = hook
    loop.set_exception_handler(on_loop_error)
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    for number in signals:
        loop.add_signal_handler(number, stop)

    def restore() -> None:
        sys.excepthook = hook_before
        loop.set_exception_handler(None)
        for number in signals:
            loop.remove_signal_handler(number)

    return restore
