"""The chart of speed by depth."""

import asyncio
from collections.abc import Iterator

import pytest

from qwendesk.bench.view.chart import ChartLine, DepthChart, tick_step
from qwendesk.widgets.tasks import Tasks
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.mark.parametrize("highest", [0.03, 1.0, 4.9, 7.0, 123.0, 999.0, 2750.0, 123_456.0])
def test_an_axis_has_few_round_ticks(highest: float) -> None:
    step = tick_step(highest)

    assert 2 <= highest / step <= 5
    assert f"{step:.0e}"[0] in "125" or f"{step:.1e}"[:3] == "2.5"


@pytest.fixture
def chart(keeper: ThemeKeeper, qt_loop: asyncio.Runner) -> Iterator[DepthChart]:
    tasks = Tasks()
    made = DepthChart()
    made.resize(600, 250)
    yield made
    qt_loop.run(tasks.close())
    made.deleteLater()


async def drawn(chart: DepthChart) -> None:
    while not chart.is_drawn:  # noqa: ASYNC110 - a widget tells nobody that it changes
        await asyncio.sleep(0)


async def test_the_chart_says_its_lines_to_screen_readers_and_takes_a_new_theme(
    chart: DepthChart, keeper: ThemeKeeper
) -> None:
    chart.show_lines([ChartLine("plain", "text_good", ((0, 91.0), (2048, 89.0)))], (0, 2048))
    assert chart.accessibleDescription() == "plain: 0 91, 2K 89"
    await drawn(chart)
    dark = chart.grab().toImage()

    keeper.choose("light")

    assert chart.grab().toImage() != dark


async def test_lines_that_come_while_pyqtgraph_is_imported_are_drawn(chart: DepthChart) -> None:
    chart.show_lines([ChartLine("plain", "text_good", ((0, 91.0), (2048, 89.0)))], (0, 2048))
    chart.show_lines([ChartLine("plain", "text_good", ((0, 31.0), (2048, 9.0)))], (0, 2048))
    empty = chart.grab().toImage()
    assert not chart.is_drawn
    await drawn(chart)
    assert chart.grab().toImage() != empty
    assert chart.accessibleDescription() == "plain: 0 31, 2K 9"
