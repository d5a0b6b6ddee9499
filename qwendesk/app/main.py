"""`qwendesk` without a command: parses the window's options and runs it until the app quits."""

import argparse
import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtWidgets import QApplication

from qwendesk.app.application import Application
from qwendesk.app.error_reporting import log_to_file, report_errors
from qwendesk.app.event_loop import EventLoop, IdleCollector, keep_collector_quick
from qwendesk.app.window.single_instance import SingleInstance, mark_as_running
from qwendesk.app.window.window_state import read_window_state, restore_window, window_state, write_window_state
from qwendesk.chat.reopen_guard import MayReopen, ReopenGuard, never
from qwendesk.core.permissions import restrict_own_folders
from qwendesk.core.processes import own_command, with_source_tree
from qwendesk.engines.engine_choice import installed_engines
from qwendesk.engines.load_decision import decide_on_cpu
from qwendesk.help.crash_reports import CrashReports
from qwendesk.services import App
from qwendesk.settings.deletion import take_leftovers
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.language import show_language
from qwendesk.widgets.theme_keeper import ThemeChoice, ThemeKeeper

if TYPE_CHECKING:
    from qwendesk.app.parts import Parts

_logger = logging.getLogger(__name__)
_THREADS_END_WITHIN_S = 10.0
# What `_run` returns if QwenDesk should start again. No exit code of a process.
RESTART = -1


def main(argv: Sequence[str]) -> int:
    """Open the window and return the exit code: 0, or 1 if a demo tour failed.

    The window loads the last model or shows the first start.
    """
    options = _arguments(argv)
    mark_as_running()
    log_to_file()
    restrict_own_folders(with_contents=False)
    app = QApplication.instance() or Application([sys.argv[0]])
    if not isinstance(app, Application):
        raise TypeError("another kind of Qt application runs already")
    app.setApplicationName("QwenDesk")
    app.setDesktopFileName("qwendesk")
    app.setQuitOnLastWindowClosed(False)
    instance = None if options.demo_tour else SingleInstance()
    if instance is not None and not instance.begin(options.files):
        return 0  # the first window has taken the files and comes to the front
    with asyncio.Runner(loop_factory=lambda: EventLoop(app)) as runner:
        code = runner.run(_run(app, options, instance))
        if code == RESTART:
            code = 0
            subprocess.Popen(_restart_command(options), env=with_source_tree(os.environ))
        # Everything is saved and closed by now. A thread that reads from an unreachable network drive may still run,
        # and closing the loop waits for it, so limit that time.
        limit = threading.Timer(_THREADS_END_WITHIN_S, os._exit, (code,))
        limit.daemon = True
        limit.start()
    limit.cancel()
    return code


def _restart_command(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the command that starts QwenDesk again with the same options, without the files that were opened."""
    theme = ("--theme", options.theme) if options.theme else ()
    return own_command(*theme, *(("--safe",) if options.safe else ()))


async def _run(app: Application, options: argparse.Namespace, instance: SingleInstance | None) -> int:
    leftovers = take_leftovers()
    engines, settings = installed_engines(is_safe=options.safe), SettingsService(is_safe=options.safe)
    show_language(app, options.lang or settings.options.language)
    ThemeKeeper(app, options.theme or "system")
    decide = decide_on_cpu if options.safe else None
    services = App(engines.client(), engines=engines, settings=settings, decide=decide)
    # This must start before anything else can start a worker, which then waits for the chosen engine.
    choice = asyncio.create_task(engines.choose(settings.options.engine))
    if not options.safe and not options.demo_tour:
        services.begin_first_load()
    # On a thread, so that the engine and the model's load get on meanwhile.
    await asyncio.to_thread(_import_window)
    from qwendesk.app.parts import Parts  # noqa: PLC0415

    parts = Parts(services)
    parts.tasks.own(choice)
    remembers = not options.demo_tour and not options.safe
    reports = None if options.demo_tour else CrashReports()
    guard = ReopenGuard()

    def remember_window() -> None:
        if remembers:
            write_window_state(window_state(parts.window, parts.desktop.menus, parts.desktop.tray))

    def end_at_once() -> None:
        remember_window()
        settings.flush()
        parts.services.profiles.flush()
        guard.end()
        if reports is not None:
            reports.end()

    # The steps run in reverse order, each of them even if another one fails.
    async with AsyncExitStack() as ending:
        ending.callback(_delete_if_requested, parts)
        if reports is not None:
            ending.callback(reports.end)
        ending.callback(guard.end)
        closed = asyncio.Event()
        parts.window.closed.connect(closed.set)
        ending.callback(report_errors(parts.window, closed.set))
        ending.push_async_callback(_close, parts)
        ending.push_async_callback(parts.services.privacy.note_request)
        ending.callback(remember_window)
        if instance is not None:
            ending.callback(instance.end)
        # When the user logs off, Windows ends the process right after this signal.
        app.aboutToQuit.connect(end_at_once)
        ending.callback(lambda: app.aboutToQuit.disconnect(end_at_once))
        parts.appearance.apply(with_theme=options.theme is None)
        keep_collector_quick()
        IdleCollector(parts.chat, parts.window)
        if remembers:
            last = read_window_state()
            restore_window(parts.window, parts.desktop.menus, parts.desktop.tray, last)
            write_window_state(msgspec.structs.replace(last, page=""))  # a killed app starts with its open chat
        parts.window.show()
        await parts.window.drawn()
        if reports is not None:
            reports.begin()
            _show_crashes(parts, reports)
        if leftovers:
            from qwendesk.settings.view.privacy_section import leftover_notice  # noqa: PLC0415 - hardly ever needed

            parts.window.add_notice(leftover_notice(leftovers, lambda: parts.navigation.settings_asked.emit("privacy")))
        parts.tasks.start(asyncio.to_thread(restrict_own_folders, with_contents=True))
        opener = parts.chats.last_chat_opener(guard)
        _begin(parts, instance, options, never if options.safe else opener.may_reopen)
        app.give_to(parts.desktop.file_opener)
        ending.callback(app.give_to, None)
        if not await _is_done_first(choice, closed):
            return 1 if options.demo_tour else 0
        if options.demo_tour:
            return await _tour(parts, options.screenshot)
        if not options.safe:
            parts.begin()
        await closed.wait()
        return RESTART if parts.window.wants_restart else 0


def _import_window() -> None:
    import qwendesk.app.parts  # noqa: F401, PLC0415


def _delete_if_requested(parts: "Parts") -> None:
    if parts.services.privacy.state.value.deletion is not None:
        from qwendesk.settings.view.privacy_section import carry_out_deletion  # noqa: PLC0415 - hardly ever needed

        carry_out_deletion(parts.services.privacy, parts.services.models.network.connection.host)


def _show_crashes(parts: "Parts", reports: CrashReports) -> None:
    from qwendesk.help.view.crash_notices import CrashNotices  # noqa: PLC0415

    notices = CrashNotices(parts.window, parts.engine.observed, reports)
    notices.notice_asked.connect(parts.window.add_notice)
    notices.error_found.connect(parts.window.report)
    notices.offer()


async def _close(parts: "Parts") -> None:
    """Close everything. An error is only logged, so that the remaining steps still run."""
    try:
        await parts.close()
    except Exception:
        _logger.exception("Closing failed")


def _begin(parts: "Parts", instance: SingleInstance | None, options: argparse.Namespace, may_reopen: MayReopen) -> None:
    """Start everything that can run while engines are tried; a worker starts only once an engine is chosen."""
    if options.safe:
        from qwendesk.help.view.crash_notices import safe_notice  # noqa: PLC0415 - hardly ever needed

        parts.window.add_notice(safe_notice())
    if options.demo_tour:
        parts.chats.services.chat_list.new(incognito=True)
    parts.start(may_reopen)
    if instance is not None:
        instance.asked.connect(parts.desktop.handed_over)
        instance.accept()
        parts.desktop.open_files([path.absolute() for path in options.files])


async def _is_done_first(work: asyncio.Task[Any], closed: asyncio.Event) -> bool:
    """Wait until `work` has ended or the window is closed. Return False if the window is closed."""
    waiting = asyncio.create_task(closed.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return not closed.is_set()


async def _tour(parts: "Parts", screenshot: Path | None) -> int:
    parts.window.load_demo()
    from qwendesk.app.window.demo_tour import DemoTour  # noqa: PLC0415 - only the tour needs it

    tour = DemoTour(parts.window.chat_page, parts.engine, parts.chat)
    answered = await tour.run()
    if screenshot is not None:
        tour.save_screenshot(parts.window, screenshot)
    return 0 if answered else 1


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    themes: tuple[ThemeChoice, ...] = ("dark", "light", "contrast", "system")
    parser = argparse.ArgumentParser(prog="qwendesk", description="Run Qwen 3.5, 3.6 and 3.8 at home, in a window.")
    parser.add_argument("--theme", choices=themes, help="the window's colours (default: as in the settings)")
    parser.add_argument(
        "--lang", metavar="CODE", help="the window's language, such as de or zh (default: as in the settings)"
    )
    parser.add_argument(
        "--demo-tour",
        action="store_true",
        help="put a question, one for a tool and one about a picture to the built-in demo, print the answers, end",
    )
    parser.add_argument("--safe", action="store_true", help="start with defaults, the CPU alone, no model and no chat")
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
