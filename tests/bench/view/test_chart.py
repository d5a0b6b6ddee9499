"""The chart of speed by depth."""

import pytest

from qwendesk.bench.view.chart import ChartLine, DepthChart, tick_step
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.mark.parametrize("highest", [0.03, 1.0, 4.9, 7.0, 123.0, 999.0, 2750.0, 123_456.0])
def test_an_axis_has_few_round_ticks(highest: float) -> None:
    step = tick_step(highest)

    assert 2 <= highest / step <= 5
    assert f"{step:.0e}"[0] in "125" or f"{step:.1e}"[:3] == "2.5"


def test_the_chart_says_its_lines_to_screen_readers_and_takes_a_new_theme(keeper: ThemeKeeper) -> None:
    chart = DepthChart()
    chart.resize(600, 250)
    chart.show_lines([ChartLine("plain", "text_good", ((0, 91.0), (2048, 89.0)))], (0, 2048))
    dark = chart.grab().toImage()

    keeper.choose("light")

    assert chart.accessibleDescription() == "plain: 0 91, 2K 89"
    assert chart.grab().toImage() != dark
    chart.deleteLater()
