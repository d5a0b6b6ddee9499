"""The tab For this PC, driven as a person does."""

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest
from PySide6.QtWidgets import QAbstractButton, QFrame, QLabel, QPushButton, QWidget

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineDeath
from qwendesk.core.units import GIB
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.for_this_pc import ForThisPc
from qwendesk.ui.models.have import Have
from tests.fakes.engine import FakeEngineClient
from tests.ui.desk import Desk

HERO = "Qwen3.5-35B-A3B"
REPO = f"unsloth/{HERO}-GGUF"
PATH = f"{HERO}-UD-Q4_K_L.gguf"


@pytest.fixture
def client(client: FakeEngineClient) -> FakeEngineClient:
    card = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
    client.devices = (card, *client.devices)
    return client


def click_in(widget: QWidget, name: str) -> None:
    button = widget.findChild(QAbstractButton, name)
    assert button is not None
    button.click()


async def open_tab(make_desk: Callable[[], Desk]) -> Desk:
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.models.offers.look()
    await desk.until(lambda: desk.is_shown(f"models.download.{HERO}"))
    return desk


async def test_one_card_is_recommended_with_its_fit(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    assert desk.find(f"models.card.{HERO}", QFrame).property("kind") == "hero"
    fit = desk.text_of(f"models.fit.{HERO}")
    assert fit.startswith("Fits in VRAM with pictures: ")
    assert "of 23.0 GB at 128K" in fit
    assert desk.text_of("models.machine").startswith("RTX 3090, 24 GB (1.0 GB reserved)")
    cards = [each for each in desk.window.findChildren(QFrame) if each.property("kind") == "hero"]
    assert len([each for each in cards if each.objectName().startswith("models.card.")]) == 1


async def test_download_carries_the_file_and_whether_pictures_are_wanted(
    make_desk: Callable[[], Desk], keeper: ThemeKeeper
) -> None:
    desk = await open_tab(make_desk)
    offers = desk.parts.models.offers
    # One of its own, which nothing is connected to.
    tab = ForThisPc(keeper, offers)
    asked: list[tuple[str, str, bool]] = []
    tab.download_asked.connect(lambda *what: asked.append(what))
    click_in(tab, f"models.download.{HERO}")
    click_in(tab, "models.pictures")
    await desk.until(lambda: not offers.offers.with_pictures)
    offer = offers.offers.find(HERO)
    assert offer is not None
    assert offer.recommended is not None
    click_in(tab, f"models.download.{HERO}")
    assert asked == [(REPO, PATH, True), (REPO, offer.recommended.path, False)]
    tab.deleteLater()


async def test_why_names_quality_and_sources(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    assert not desk.is_shown(f"models.reasons.{HERO}")
    desk.click(f"models.why.{HERO}")
    text = desk.text_of(f"models.reasons.{HERO}")
    assert "6.589" in text
    assert "r/LocalLLaMA" in text
    assert REPO in text
    desk.click(f"models.why.{HERO}")
    assert not desk.is_shown(f"models.reasons.{HERO}")


async def test_the_table_has_every_quant_and_says_what_speaks_against_one(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    desk.click(f"models.open.{HERO}")
    offer = desk.parts.models.offers.offers.find(HERO)
    assert offer is not None
    assert all(desk.has(f"models.get.{HERO}.{quant.quant}") for quant in offer.quants)
    labels = [label.text() for label in desk.find(f"models.card.{HERO}", QFrame).findChildren(QLabel)]
    assert any("UD-Q4_K_L is 0.5 GB smaller" in text for text in labels)
    desk.click(f"models.open.{HERO}")
    assert not desk.is_shown(f"models.get.{HERO}.Q8_0")


async def test_a_file_that_is_here_is_used_instead_of_downloaded(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    desk.parts.models.for_this_pc.show_have(Have({(REPO, PATH): "/models/x.gguf"}, frozenset()))
    assert desk.text_of(f"models.download.{HERO}") == "Use"
    desk.click(f"models.download.{HERO}")
    await desk.until(lambda: desk.parts.engine.state.wanted is not None)
    wanted = desk.parts.engine.state.wanted
    assert wanted is not None
    assert PurePosixPath(wanted.model).name == "x.gguf"
    await desk.until(lambda: desk.parts.engine.state.report is not None)


async def test_a_download_on_its_way_cannot_be_asked_for_twice(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    desk.parts.models.for_this_pc.show_have(Have({}, frozenset({(REPO, PATH)})))
    assert not desk.find(f"models.download.{HERO}", QPushButton).isEnabled()


async def test_without_a_gpu_it_says_so(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.devices = client.devices[1:]
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.models.offers.look()
    await desk.until(lambda: desk.parts.models.offers.offers.state == "ready")
    assert "no GPU" in desk.text_of("models.pc.status")


async def test_an_engine_that_fails_is_said_and_can_be_asked_again(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.start_result = EngineDeath(1, "A library is missing.")
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.models.offers.look()
    await desk.until(lambda: desk.parts.models.offers.offers.state == "ready")
    assert "A library is missing." in desk.text_of("models.pc.status")
    client.start_result = None
    desk.click("models.pc.again")
    await desk.until(lambda: bool(desk.parts.models.offers.offers.pc.gpus))
    assert "missing" not in desk.text_of("models.pc.status")


async def test_a_download_that_cannot_begin_says_why(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    desk.parts.settings.change({"offline": True})
    try:
        desk.click(f"models.download.{HERO}")
        await desk.until(lambda: desk.is_shown("models.pc.problem"))
    finally:
        desk.parts.settings.change({"offline": False})
    assert "offline" in desk.text_of("models.pc.problem")


async def test_another_reserve_is_counted_at_once(make_desk: Callable[[], Desk]) -> None:
    desk = await open_tab(make_desk)
    assert "of 23.0 GB" in desk.text_of(f"models.fit.{HERO}")
    desk.parts.settings.change({"reserve_gb": 4.0})
    try:
        await desk.until(lambda: desk.parts.models.offers.offers.pc.reserve_bytes == 4 * GIB)
        assert "4.0 GB reserved" in desk.text_of("models.machine")
    finally:
        desk.parts.settings.change({"reserve_gb": 1.0})
    await desk.until(lambda: desk.parts.models.offers.offers.pc.reserve_bytes == GIB)
