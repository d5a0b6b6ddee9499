"""The choice of a purpose on the tab For this PC, driven as a user does."""

import asyncio
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QRadioButton, QWidget

from qwendesk.core.units import GIB
from qwendesk.models.offers import Offers
from qwendesk.models.purposes import PURPOSES
from qwendesk.models.view.offer_row import OfferRow
from qwendesk.models.view.purpose_tiles import PurposeTile
from qwendesk.widgets.tab_order import tab_stops_in
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.app.test_languages import settle
from tests.fakes.engine import FakeEngineClient
from tests.window_desk import Desk


async def open_tab(make_desk: Callable[[], Desk], ram_gb: int = 64) -> Desk:
    desk = make_desk()
    offers = desk.parts.services.models.offers
    offers._ram_bytes = ram_gb * GIB
    desk.click("rail.models")
    await offers.update()
    return desk


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_tab(make_desk))


def offers_of(desk: Desk) -> Offers:
    return desk.parts.services.models.offers.state.value


def hero_cards(desk: Desk) -> list[str]:
    """The models whose row is marked as recommended."""
    rows = [each for each in desk.window.findChildren(OfferRow) if each.isVisible()]
    return [each.offer.id for each in rows if each.offer.is_hero]


def checked(desk: Desk) -> list[str]:
    return [each for each in PURPOSES if desk.find(f"models.purpose.{each}", QRadioButton).isChecked()]


async def test_fast_is_chosen_at_first_and_recommends_what_the_first_start_does(desk: Desk) -> None:
    offers = offers_of(desk)
    assert checked(desk) == ["fast"]
    assert offers.hero is not None
    assert hero_cards(desk) == [offers.hero.id]
    assert offers.choice is not None
    assert (offers.choice.offer.id, offers.choice.quant) == (offers.hero.id, offers.hero.recommended)


@pytest.mark.parametrize("with_pictures", [True, False])
async def test_each_purpose_recommends_the_first_of_its_ranking(desk: Desk, with_pictures: bool) -> None:
    if not with_pictures:
        await desk.parts.services.models.offers.set_pictures(with_pictures=False)
    found = set()
    for purpose in reversed(PURPOSES):
        desk.click(f"models.purpose.{purpose}")
        assert checked(desk) == [purpose]
        best = offers_of(desk).choices[purpose][0]
        model = best.offer.id
        found.add((model, best.quant.quant))
        assert hero_cards(desk) == [model]
        desk.click(f"models.open.{model}")
        assert desk.find(f"models.file.{model}", QComboBox).currentText().startswith(f"{best.quant.quant} ")
        advice = desk.text_of(f"models.advice.{model}")
        assert best.reason in advice
        assert best.drawback in advice
        assert ("load options" in advice) is (best.options.aim == "long_context")
        assert ("with vision file" in desk.find(f"models.download.{model}", QPushButton).toolTip()) is with_pictures
        desk.click(f"models.why.{model}")
        why = desk.text_of(f"models.reasons.{model}")
        assert all(each.source in why and each.date in why for each in best.offer.benchmarks)
        assert all(each.source in why for each in best.quant.quality)
        assert len(offers_of(desk).for_purpose) == len(offers_of(desk).offers)
    assert len(found) > 1


async def test_the_purpose_is_kept_when_the_pc_is_planned_again(desk: Desk) -> None:
    desk.click("models.purpose.deep")
    desk.click("models.purpose.deep")
    assert checked(desk) == ["deep"], "a second click doesn't turn it off"
    await desk.parts.services.models.offers.set_pictures(with_pictures=False)
    await desk.parts.services.models.offers.refresh()
    assert checked(desk) == ["deep"]
    assert hero_cards(desk) == [offers_of(desk).choices["deep"][0].offer.id]


async def test_a_purpose_is_chosen_with_the_keyboard(desk: Desk) -> None:
    first = desk.find(f"models.purpose.{PURPOSES[0]}", QRadioButton)
    desk.window.activateWindow()
    first.setFocus()
    await desk.until(first.hasFocus)
    for purpose in PURPOSES[1:]:
        desk.press(Qt.Key.Key_Right)
        assert checked(desk) == [purpose]
        assert desk.window.focusWidget() is desk.find(f"models.purpose.{purpose}", QRadioButton)
    stops = tab_stops_in(desk.find("models.purposes", QWidget))
    assert [each.objectName() for each in stops] == [f"models.purpose.{PURPOSES[-1]}"], "the row is one stop"


async def test_nothing_is_recommended_if_nothing_fits(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.devices = client.devices[1:]
    desk = await open_tab(make_desk, ram_gb=1)
    for purpose in PURPOSES:
        desk.click(f"models.purpose.{purpose}")
        assert offers_of(desk).choice is None
        assert checked(desk) == [purpose]
        assert hero_cards(desk) == []
    assert len(offers_of(desk).for_purpose) == len(offers_of(desk).offers) > 0


@pytest.mark.parametrize("scale", [1.0, 1.5])
async def test_no_title_is_cut_in_a_narrow_window(desk: Desk, keeper: ThemeKeeper, scale: float) -> None:
    desk.window.resize(900, 640)
    keeper.set_text_scale(scale)
    await settle()

    tiles = [desk.find(f"models.purpose.{each}", PurposeTile) for each in PURPOSES]

    assert all(each.width() >= each.least_width for each in tiles)
    assert (len({each.y() for each in tiles}) == 1) == (scale == 1.0), "two rows where one would cut a title"
    keeper.set_text_scale(1.0)
