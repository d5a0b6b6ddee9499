"""How fast is it? As a user sees it: empty, running, stopped, failed and full."""

from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QWidget

from qwendesk.bench.records import BenchRecords
from qwendesk.engine.protocol import RequestFailed
from tests.bench.view.conftest import BenchDesk


def texts_of(desk: BenchDesk) -> list[str]:
    table = desk.find("bench.table", QWidget)
    return [label.text().replace("\N{NO-BREAK SPACE}", " ") for label in table.findChildren(QLabel)]


def findings(desk: BenchDesk, name: str) -> str:
    return "\n".join(
        label.text()
        for label in desk.window.findChildren(QLabel)
        if label.objectName().startswith(name) and label.isVisible()
    )


async def load_and_open(desk: BenchDesk) -> None:
    await desk.load_demo()
    desk.open_section("speed")
    await desk.until(lambda: desk.find("bench.run", QAbstractButton).isEnabled())


async def test_without_a_model_the_section_says_what_is_missing(desk: BenchDesk) -> None:
    desk.open_section("speed")

    assert "Choose a model" in desk.text_of("bench.words")
    assert not desk.find("bench.run", QAbstractButton).isEnabled()
    assert not desk.is_shown("bench.headline")


async def test_a_run_is_told_in_sentences_and_kept_with_its_table(desk: BenchDesk) -> None:
    await load_and_open(desk)

    await desk.run_to_end()

    assert desk.text_of("bench.headline") == "Answers 75 words a second (100 tok/s): 19 times as fast as you read."
    told = findings(desk, "bench.finding")
    assert "A page of text is read in 4.0 s, a PDF of 10 pages in 40 s." in told
    assert "In a chat of 20 pages it still answers 75 words a second (100 tok/s)." in told
    assert not desk.is_shown("bench.table"), "codes are in the details"
    desk.click("bench.details")
    assert desk.is_shown("bench.table")
    shown = texts_of(desk)
    assert {"pp512", "tg128", "tg128 @ d2048", "tg128 @ d8192", "turn 2 @ d2000"} <= set(shown)
    assert "100 ± 0.0" in shown
    assert "plain" in desk.text_of("bench.legend")
    assert desk.text_of("bench.run") == "Measure again"
    assert BenchRecords().latest() == desk.parts.services.bench.speed.state.value.records
    assert desk.parts.engine.state.report is not None


async def test_stop_keeps_what_was_measured_and_its_place_for_a_moment(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.bench_client.blocks_at = "tg128 @ d2048"
    desk.click("bench.run")
    await desk.bench_client.is_blocked.wait()
    await desk.until(lambda: "A chat of 5 pages" in findings(desk, "bench.found"))
    assert "Measuring." in desk.text_of("bench.doing")
    assert "A page of text is read" in findings(desk, "bench.found")

    desk.click("bench.stop")
    await desk.until(lambda: not desk.parts.services.bench.speed.state.value.is_running)
    await desk.until(lambda: desk.is_shown("bench.trouble"))
    assert desk.is_shown("bench.stop"), "a late click begins nothing"
    desk.click("bench.stop")
    assert not desk.parts.services.bench.speed.state.value.is_running
    await desk.until(lambda: desk.is_shown("bench.headline"))
    await desk.parts.engine.wait_until_settled()

    assert "You stopped" in desk.text_of("bench.trouble")
    assert desk.window.focusWidget() is desk.find("bench.run", QAbstractButton)
    assert {"pp512", "tg128", "pp512 @ d2048"} <= set(texts_of(desk))
    assert desk.parts.engine.state.report is not None


async def test_drafts_that_slow_the_model_are_said_and_off_from_now_on(desk: BenchDesk) -> None:
    desk.bench_client.report = msgspec.structs.replace(desk.bench_client.report, n_draft_max=2)
    desk.bench_client.speed = lambda options, _test: 100.0 if options.speculative == "off" else 50.0
    await load_and_open(desk)

    await desk.run_to_end()

    assert "Token drafts would make answers 50% slower here: off." in findings(desk, "bench.finding")
    assert desk.text_of("bench.headline").startswith("Answers 75 words a second")
    drafted = next(options for options in desk.bench_client.loaded if options.speculative != "off")
    assert desk.parts.services.planner.measured.draft_speedup(drafted, desk.bench_client.devices) == 0.5


async def test_a_failure_is_shown_in_its_own_words(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.bench_client.failure = RequestFailed(id=0, title="Engine error", sentence="Out of memory.")

    desk.click("bench.run")
    await desk.until(lambda: desk.is_shown("bench.run") and desk.is_shown("bench.trouble"))

    assert "Engine error. Out of memory." in desk.text_of("bench.trouble")
    assert desk.find("bench.run", QAbstractButton).isEnabled()


async def test_a_run_is_exported_as_text_and_as_picture_without_folders(desk: BenchDesk, tmp_path: Path) -> None:
    await load_and_open(desk)
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


async def test_the_result_leads_to_what_makes_it_faster(desk: BenchDesk) -> None:
    await load_and_open(desk)
    await desk.run_to_end()
    desk.bench_client.blocks_at = "pp128"

    desk.click("bench.faster")

    await desk.bench_client.is_blocked.wait()
    await desk.until(lambda: desk.find("tune.stop", QAbstractButton).hasFocus())
    desk.press(Qt.Key.Key_Space)
    await desk.until(lambda: not desk.parts.services.bench.tune.state.value.is_running)
    await desk.parts.engine.wait_until_settled()
