"""The chart of speed by depth."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QImage

from qwendesk.bench.view.chart import ChartLine, DepthChart, tick_step
from qwendesk.widgets.theme_keeper import ThemeKeeper, current_theme


@pytest.mark.parametrize("highest", [0.03, 1.0, 4.9, 7.0, 123.0, 999.0, 2750.0, 123_456.0])
def test_an_axis_has_few_round_ticks(highest: float) -> None:
    step = tick_step(highest)

    assert 2 <= highest / step <= 5
    assert f"{step:.0e}"[0] in "125" or f"{step:.1e}"[:3] == "2.5"


@pytest.fixture
def chart(keeper: ThemeKeeper) -> Iterator[DepthChart]:
    made = DepthChart()
    made.resize(600, 250)
    yield made
    made.deleteLater()


def drawn(chart: DepthChart) -> QImage:
    return chart.grab().toImage()


def colored(picture: QImage, role: str) -> list[tuple[int, int]]:
    """The pixels that have exactly a colour of the theme, left to right."""
    color = current_theme().color(role).rgb()
    return [(x, y) for x in range(picture.width()) for y in range(picture.height()) if picture.pixel(x, y) == color]


def test_the_chart_says_its_lines_to_screen_readers_and_takes_a_new_theme(
    chart: DepthChart, keeper: ThemeKeeper
) -> None:
    chart.show_lines([ChartLine("plain", "text_good", ((0, 91.0), (2048, 89.0)))], (0, 2048))
    dark = drawn(chart)

    keeper.choose("light")

    assert chart.accessibleDescription() == "plain: 0 91, 2K 89"
    assert drawn(chart) != dark


def test_a_line_falls_where_the_speed_does_and_another_is_in_its_own_color(chart: DepthChart) -> None:
    lines = [
        ChartLine("with drafts", "accent", ((0, 100.0), (2048, 50.0), (8192, 25.0))),
        ChartLine("reported", "text_warn", ((0, 20.0), (8192, 20.0)), is_dashed=True),
    ]
    chart.show_lines(lines, (0, 2048, 8192))
    picture = drawn(chart)
    falling, level = colored(picture, "accent"), colored(picture, "text_warn")
    assert falling[0][1] < falling[len(falling) // 2][1] < falling[-1][1]
    assert max(y for _, y in falling) < min(y for _, y in level), "25 tok/s is above 20"
    assert max(y for _, y in level) - min(y for _, y in level) <= 2
    assert not colored(picture, "text_good")


def test_a_depth_between_two_ticks_is_between_them(chart: DepthChart) -> None:
    chart.show_lines([ChartLine("reported", "accent", ((1024, 30.0),))], (0, 2048))
    middle = [x for x, _ in colored(drawn(chart), "accent")]
    chart.show_lines([ChartLine("reported", "accent", ((0, 30.0),))], (0, 2048))
    first = [x for x, _ in colored(drawn(chart), "accent")]
    chart.show_lines([ChartLine("reported", "accent", ((2048, 30.0),))], (0, 2048))
    last = [x for x, _ in colored(drawn(chart), "accent")]
    assert middle
    assert max(first) < min(middle) <= max(middle) < min(last)


@pytest.mark.parametrize("depths", [(), (0,)])
def test_an_empty_chart_and_one_of_a_single_depth_are_drawn(chart: DepthChart, depths: tuple[int, ...]) -> None:
    chart.show_lines([ChartLine("plain", "accent", ((0, 30.0),))] if depths else [], depths)
    assert bool(colored(drawn(chart), "accent")) is bool(depths)
