"""The Bench page as a user sees it: empty, running, stopped, failed and full."""

import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel

from qwendesk.bench.records import BenchRecords
from qwendesk.engine.protocol import RequestFailed
from tests.bench.view.conftest import BenchDesk

CTRL = Qt.KeyboardModifier.ControlModifier


def texts_of(desk: BenchDesk) -> list[str]:
    table = desk.find("bench.table", QLabel.__mro__[1])
    return [
        label.text().replace("\N{NO-BREAK SPACE}", " ") for label in table.findChildren(QLabel) if label.isVisible()
    ]


async def test_ctrl_4_opens_the_page_which_says_that_a_model_is_missing(desk: BenchDesk) -> None:
    desk.window.go_to("chat")

    desk.press(Qt.Key.Key_4, CTRL)

    assert desk.window.page == "bench"
    assert "Choose a model" in desk.text_of("bench.words")
    assert not desk.find("bench.run", QAbstractButton).isEnabled()
    assert not desk.is_shown("bench.table")


async def test_a_run_fills_table_and_chart_and_is_kept(desk: BenchDesk) -> None:
    await desk.load_demo()
    await desk.until(lambda: desk.find("bench.run", QAbstractButton).isEnabled())

    await desk.run_to_end()

    shown = texts_of(desk)
    assert {"pp512", "tg128", "tg128 @ d2048", "tg128 @ d8192", "turn 2 @ d2000"} <= set(shown)
    assert "100 ± 0.0" in shown
    assert "plain" in desk.text_of("bench.legend")
    assert desk.text_of("bench.run").startswith("Run, ~")
    assert BenchRecords().of(desk.parts.services.bench.speed.state.value.records[0].file)
    assert desk.parts.engine.state.report is not None


async def test_stop_keeps_what_was_measured_and_loads_the_model_again(desk: BenchDesk) -> None:
    await desk.load_demo()
    desk.bench_client.blocks_at = "tg128 @ d2048"
    await desk.until(lambda: desk.find("bench.run", QAbstractButton).isEnabled())
    desk.click("bench.run")
    await desk.bench_client.is_blocked.wait()
    await desk.until(lambda: "tg128 @ d2048" in desk.text_of("bench.progress.text"))
    assert desk.text_of("bench.run") == "Stop"

    desk.click("bench.run")
    await desk.until(lambda: desk.is_shown("bench.trouble"))
    await desk.parts.engine.wait_until_settled()

    assert "You stopped" in desk.text_of("bench.trouble")
    assert desk.window.focusWidget() is desk.find("bench.run", QAbstractButton)
    assert {"pp512", "tg128", "pp512 @ d2048"} <= set(texts_of(desk))
    assert desk.parts.engine.state.report is not None


async def test_a_failure_is_shown_in_its_own_words(desk: BenchDesk) -> None:
    await desk.load_demo()
    desk.bench_client.failure = RequestFailed(id=0, title="Engine error", sentence="Out of memory.")
    await desk.until(lambda: desk.find("bench.run", QAbstractButton).isEnabled())

    desk.click("bench.run")
    await desk.until(lambda: desk.is_shown("bench.trouble"))

    assert "Engine error. Out of memory." in desk.text_of("bench.trouble")
    assert desk.find("bench.run", QAbstractButton).isEnabled()


async def test_a_run_is_exported_as_text_and_as_picture_without_folders(desk: BenchDesk, tmp_path: Path) -> None:
    await desk.load_demo()
    await desk.until(lambda: desk.find("bench.run", QAbstractButton).isEnabled())
    await desk.run_to_end()

    desk.find("bench.export.text", QAction).trigger()
    text = QGuiApplication.clipboard().text()
    desk.find("bench.export.picture", QAction).trigger()
    dialog = desk.find("bench.save", QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "speed.png"))
    dialog.close()

    assert "| tg128 |" in text
    assert "/" not in text.split("\n")[0].replace("tok/s", "")
    assert str(Path.home()) not in text
    picture = QImage(str(tmp_path / "speed.png"))
    assert picture.width() > 300
    assert picture.height() > 300


def test_the_chart_s_library_is_not_imported_at_start() -> None:
    code = "import sys, qwendesk.app.parts; sys.exit('pyqtgraph' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
