"""The Quality tab as a user sees it."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QWidget

from qwendesk.core.benchmarks import Divergence, TextScore
from qwendesk.engine.protocol import RequestFailed
from tests.bench.view.conftest import BenchDesk

SCORE = TextScore(n_chunks=20, n_tokens=5100, perplexity=6.6834, error=0.0412)
DIVERGENCE = Divergence(
    mean=0.0036, error=0.0004, median=0.0004, p99=0.079, maximum=1.03, same_top=0.98, base_perplexity=6.67
)


def cells(desk: BenchDesk) -> list[str]:
    table = desk.find("quality.table", QWidget)
    return [
        label.text().replace("\N{NO-BREAK SPACE}", " ")
        for label in table.findChildren(QLabel)
        if label.isVisible() and label.text()
    ]


def texts(desk: BenchDesk) -> list[str]:
    return [label.text() for label in desk.window.findChildren(QLabel)]


def choose(desk: BenchDesk, button: str, dialog: str, path: Path) -> None:
    desk.click(button)
    shown = desk.find(dialog, QFileDialog)
    shown.fileSelected.emit(str(path))
    shown.close()


async def load_and_open(desk: BenchDesk) -> None:
    await desk.load_demo()
    desk.open_section("quality")
    await desk.until(lambda: desk.find("quality.run", QAbstractButton).isEnabled())


async def run(desk: BenchDesk, is_shown: Callable[[], bool]) -> None:
    """Score the text, until the tab shows what came of it."""
    state = desk.parts.services.bench.quality.state
    desk.click("quality.run")
    await desk.until(lambda: state.value.is_running)
    await desk.until(lambda: not state.value.is_running)
    await desk.parts.engine.wait_until_settled()
    await desk.until(is_shown)


async def test_the_guide_is_scored_and_the_score_is_kept(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.bench_client.score = SCORE

    await run(desk, lambda: {"6.6834 ± 0.0412", "guide, 20 × 512", "f16"} <= set(cells(desk)))

    (scored,) = desk.bench_client.scored
    assert scored.path.endswith("guide.txt")
    assert (scored.base, scored.save_base) == ("", "")
    kept = desk.parts.services.bench.quality
    await kept.read()
    assert kept.state.value.records[0].score == SCORE


async def test_a_saved_base_is_what_the_next_run_compares_with(desk: BenchDesk, tmp_path: Path) -> None:
    await load_and_open(desk)
    text, base = tmp_path / "wiki.txt", tmp_path / "best.qdbase"
    text.write_text("words", encoding="utf-8")
    choose(desk, "quality.text.choose", "quality.text.dialog", text)
    choose(desk, "quality.base.save", "quality.save.dialog", base)
    desk.bench_client.score = SCORE
    await run(desk, lambda: "compared with best.qdbase" in texts(desk))
    desk.bench_client.score = TextScore(n_chunks=20, n_tokens=5100, perplexity=6.7, error=0.04, divergence=DIVERGENCE)

    await run(desk, lambda: {"0.00360 ± 0.00040", "98.00%", "wiki.txt, 20 × 512"} <= set(cells(desk)))

    first, second = desk.bench_client.scored
    assert (first.path, first.save_base, first.base) == (str(text), str(base), "")
    assert (second.path, second.save_base, second.base) == (str(text), "", str(base))


async def test_a_refusal_is_shown_in_its_own_words(desk: BenchDesk, tmp_path: Path) -> None:
    await load_and_open(desk)
    desk.bench_client.failure = RequestFailed(id=0, title="Another text", sentence="Choose the same text file.")
    choose(desk, "quality.base.choose", "quality.base.dialog", tmp_path / "other.qdbase")

    await run(desk, lambda: desk.text_of("quality.trouble") == "Another text. Choose the same text file.")


async def test_nothing_is_cut_off_in_a_narrow_window(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.window.resize(560, 720)
    card = desk.find("quality.length", QWidget).parentWidget().parentWidget()
    page = desk.find("quality.run", QWidget).window()
    await desk.until(lambda: page.width() == 560 and card.width() < 480)
    for name in ("length", "chunks", "cache", "text.choose", "text.guide", "base.choose", "base.save", "base.none"):
        control = desk.find(f"quality.{name}", QWidget)
        assert control.mapTo(card, control.rect().topRight()).x() < card.width(), name
