"""Speeds that are pasted on the Bench page count on the page For this PC, and can be removed again."""

from pathlib import Path

from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit

from qwendesk.core import paths
from tests.bench.view.conftest import BenchDesk
from tests.models import pasted


def pasted_here(desk: BenchDesk) -> list[float]:
    catalog = desk.parts.services.models.catalog.store.catalog
    return [report.tok_s for report in catalog.contents.speeds if report.is_pasted]


async def test_a_pasted_table_is_added_shown_and_removed(desk: BenchDesk) -> None:
    desk.click("bench.paste")
    desk.find("pasted.text", QPlainTextEdit).setPlainText(pasted.TERMINAL)
    desk.click("pasted.add")
    await desk.until(lambda: desk.is_shown("pasted.report.2"))

    assert desk.text_of("pasted.note") == "2 speeds were added."
    assert desk.find("pasted.text", QPlainTextEdit).toPlainText() == ""
    assert "122 tok/s at the start · RTX 3090, CUDA, Qwen3.6-35B-A3B UD-Q4_K_M" in desk.text_of("pasted.report.1")
    assert pasted_here(desk) == [121.62, 98.2]
    assert (paths.data_folder() / "speed-reports.json").exists()

    desk.click("pasted.remove.1")
    await desk.until(lambda: not desk.is_shown("pasted.report.2"))
    assert pasted_here(desk) == [98.2]
    desk.click("pasted.remove.1")
    await desk.until(lambda: not pasted_here(desk))
    desk.click("pasted.close")


async def test_a_text_without_a_card_asks_for_one_and_other_text_is_refused(desk: BenchDesk) -> None:
    desk.click("bench.paste")
    desk.find("pasted.text", QPlainTextEdit).setPlainText(pasted.FRAMEWORK)
    desk.click("pasted.add")
    await desk.until(lambda: desk.is_shown("pasted.note"))
    assert "doesn't name the graphics card" in desk.text_of("pasted.note")

    desk.find("pasted.cards", QLineEdit).setText("RTX 9999")
    desk.click("pasted.add")
    await desk.until(lambda: "RTX 9999" in desk.text_of("pasted.note"))
    assert not pasted_here(desk)
    desk.click("pasted.close")


async def test_a_run_is_copied_as_a_row_with_the_hash_of_its_file(desk: BenchDesk, tmp_path: Path) -> None:
    await desk.load_demo()
    await desk.run_to_end()
    QGuiApplication.clipboard().setText("")

    desk.find("bench.export.row", QAction).trigger()
    await desk.until(lambda: QGuiApplication.clipboard().text() != "")

    row = QGuiApplication.clipboard().text()
    assert row.startswith("| QwenDesk ")
    assert row.count("\n") == 1
    assert ", sha256 " in row
    assert "tg128: 100.00" in row
    assert str(Path.home()) not in row
