"""The tab For this PC, driven as a user does."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from qwendesk.core.failures import EngineExit
from qwendesk.core.translation import unbroken
from qwendesk.core.units import GIB, show_rate
from qwendesk.engine.state import Phase
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.view.offer_row import OfferRow
from qwendesk.widgets.theme_keeper import ThemeChoice, app_theme, current_theme
from tests.app.test_languages import settle
from tests.fakes.engine import FakeEngineClient
from tests.models.view.offers_desk import (
    HERO,
    MEASURED,
    PATH,
    REPO,
    open_results,
    open_tab,
    show_all,
    shown_models,
    tab_of,
)
from tests.window_desk import Desk


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_tab(make_desk))


async def test_one_row_is_recommended_with_its_speed_length_fit_and_size(desk: Desk) -> None:
    words = {each: desk.text_of(f"models.{each}.{HERO}") for each in ("speed", "length", "fit", "place", "size")}
    assert words == {
        "speed": "118 tok/s",
        "length": "330 pages",
        "fit": "Fits",
        "place": "on the GPU",
        "size": "17.3 GB",
    }
    assert "23.0 GB" in desk.find(f"models.fit.{HERO}", QLabel).parentWidget().toolTip()
    assert desk.text_of("models.machine").startswith("RTX 3090 with 24 GB")
    buttons = [each for each in tab_of(desk).findChildren(QPushButton) if each.property("kind") == "primary"]
    assert [each.objectName() for each in buttons if each.isVisible()] == [f"models.download.{HERO}"]


async def test_best_models_come_first_and_the_others_on_demand(desk: Desk) -> None:
    offers = desk.parts.services.models.offers.state.value
    best = [each.offer.id for each in offers.choices["fast"]]
    assert shown_models(desk) == best[:4]
    assert desk.text_of("models.pc.status") == f"The best 4 of {len(offers.offers)} models for quick answers"
    n_more = len(offers.offers) - 4
    assert desk.text_of("models.more") == f"Show {n_more} more: smaller, slower or too large for this PC"
    desk.click("models.more")
    assert shown_models(desk)[: len(best)] == best
    assert set(shown_models(desk)) == {each.id for each in offers.offers}
    desk.click("models.more")
    assert shown_models(desk) == best[:4]


async def test_model_that_is_too_large_says_so_and_has_no_button(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = make_desk()
    desk.parts.services.models.offers._ram_bytes = 8 * GIB
    desk.click("rail.models")
    offers = await desk.parts.services.models.offers.update()
    show_all(desk)
    large = next(each for each in offers.offers if each.recommended is None)
    assert desk.text_of(f"models.fit.{large.id}") == "Too large"
    assert desk.text_of(f"models.place.{large.id}").startswith("needs ")
    assert not desk.is_shown(f"models.download.{large.id}")


async def test_a_model_that_another_program_runs_faster_says_so(desk: Desk) -> None:
    """Only its details: the speeds of all other models are comparable."""
    show_all(desk)
    for model, has_note in (("Qwen3.8-Flash-Next", True), (HERO, False)):
        desk.click(f"models.open.{model}")
        advice = desk.text_of(f"models.advice.{model}")
        assert ("Strata" in advice) is has_note
        assert ("llama.cpp's" in advice) is has_note


async def test_a_licence_that_restricts_is_marked_in_the_row_with_the_download_button(desk: Desk) -> None:
    """The licence of other models is only named, in the details."""
    model = "Qwen3.8-Flash-Next"
    show_all(desk)
    assert desk.is_shown(f"models.licence.{model}")
    assert "needs a separate licence" in desk.find(f"models.licence.{model}", QLabel).toolTip()
    assert not desk.is_shown(f"models.licence.{HERO}")
    for each, words in ((model, "needs a separate licence"), (HERO, "Apache 2.0")):
        desk.click(f"models.open.{each}")
        assert words in desk.text_of(f"models.terms.{each}")


async def test_download_button_downloads_with_the_vision_file_if_chosen(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = desk.parts.services.models
    added: list[tuple[str, str, bool]] = []

    async def add(repo: str, path: str, *, with_mmproj: bool) -> str:
        added.append((repo, path, with_mmproj))
        return ""

    monkeypatch.setattr(services.downloads, "add", add)
    desk.click(f"models.download.{HERO}")
    desk.click("models.pictures")
    await desk.until(lambda: not services.offers.state.value.with_pictures)
    offer = services.offers.state.value.find(HERO)
    assert offer is not None
    assert offer.recommended is not None
    desk.click(f"models.download.{HERO}")
    await desk.until(lambda: len(added) == 2)
    assert added == [(REPO, PATH, True), (REPO, offer.recommended.path, False)]


async def test_other_uploaders_are_named_below_the_quants_and_lead_to_their_files(desk: Desk) -> None:
    other = "bartowski/Qwen_Qwen3.5-35B-A3B-GGUF"
    desk.parts.services.settings.change({"offline": True})
    open_results(desk, MEASURED)
    assert "Never had the fault of Unsloth" in desk.text_of(f"models.other.{other}")
    desk.click(f"models.other.open.{other}")
    opened = desk.parts.services.models.search.state
    await desk.until(lambda: opened.value.opened is not None and opened.value.opened.state != "looking")
    assert opened.value.opened is not None
    assert opened.value.opened.repo == other
    assert opened.value.opened.items, "offline those of the catalog"
    assert desk.parts.models_page.page().shown_tab == "hub"
    desk.parts.services.settings.change({"offline": False})


async def test_why_names_quality_and_sources(desk: Desk) -> None:
    desk.click(f"models.open.{MEASURED}")
    assert not desk.is_shown(f"models.reasons.{MEASURED}")
    desk.click(f"models.why.{MEASURED}")
    text = desk.text_of(f"models.reasons.{MEASURED}")
    assert "6.589" in text
    assert "r/LocalLLaMA" in text
    assert f"unsloth/{MEASURED}-GGUF" in text
    desk.click(f"models.why.{MEASURED}")
    assert not desk.is_shown(f"models.reasons.{MEASURED}")


async def test_table_has_every_quant_and_reasons_against_it(desk: Desk) -> None:
    open_results(desk, MEASURED)
    offer = desk.parts.services.models.offers.state.value.find(MEASURED)
    assert offer is not None
    assert all(desk.has(f"models.get.{MEASURED}.{quant.quant}") for quant in offer.quants)
    labels = [label.text() for label in desk.find(f"models.card.{MEASURED}", QWidget).findChildren(QLabel)]
    assert any("UD-Q4_K_L is 0.5 GB smaller" in text for text in labels)
    desk.click(f"models.open.{MEASURED}")
    assert not desk.is_shown(f"models.get.{MEASURED}.Q8_0")


async def test_measured_speed_replaces_the_estimate(desk: Desk, tmp_path: Path) -> None:
    open_results(desk, HERO)
    reported = desk.find(f"models.expect.{HERO}", QLabel).toolTip()
    assert "118 tok/s at 10K (RTX 3090, CUDA, Qwen3.5-35B-A3B UD-IQ4_XS)" in reported
    desk.click("rail.chat")
    desk.window.load_model(str(tmp_path / PATH))
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    await desk.ask(" ".join(f"word{number}" for number in range(40)))
    measured = desk.parts.services.models.speeds.value[PATH]
    desk.click("rail.models")
    assert desk.text_of(f"models.speed.{HERO}") == f"{show_rate(measured)} tok/s"
    assert desk.text_of(f"models.expect.{HERO}") == unbroken(f"{show_rate(measured)} tok/s, measured here")
    labels = [label.text() for label in desk.find(f"models.quants.{HERO}", QWidget).findChildren(QLabel)]
    assert len([label for label in labels if "measured here" in label]) == 1
    assert "Speed: measured on this PC" in desk.text_of(f"models.reasons.{HERO}")


async def test_fit_that_leaves_little_ram_is_shown_as_tight(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.devices = client.devices[1:]
    desk = await open_tab(make_desk)
    desk.parts.services.models.offers._ram_bytes = 24 * GIB
    offers = await desk.parts.services.models.offers.refresh()
    tight, roomy = (next(each for each in offers.offers if each.id == name) for name in (HERO, "Qwen3.5-4B"))
    for offer, is_tight in ((tight, True), (roomy, False)):
        assert offer.recommended is not None
        assert offer.recommended.fit.is_tight is is_tight
        open_results(desk, offer.id)
        word, tone = ("Tight", "warn") if is_tight else ("Fits", "good")
        assert desk.text_of(f"models.fit.{offer.id}") == word
        assert desk.is_shown(f"models.tight.{offer.id}") is is_tight
        start = "Tight: leaves " if is_tight else "Fits in RAM: "
        chips = desk.find(f"models.quants.{offer.id}", QWidget).findChildren(QLabel)
        assert any(each.text().startswith(start) and each.property("chip") == tone for each in chips)


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_download_buttons_of_the_table_look_like_buttons_unless_disabled(desk: Desk, theme: ThemeChoice) -> None:
    app_theme().choose(theme)
    open_results(desk, HERO)
    await settle()
    button = desk.find(f"models.get.{HERO}.UD-Q4_K_XL", QPushButton)
    ground = current_theme()["window"].lower()
    enabled = button.grab().toImage()
    assert enabled.pixelColor(6, enabled.height() // 2).name() == current_theme()["card"].lower() != ground
    button.setEnabled(False)
    disabled = button.grab().toImage()
    assert disabled.pixelColor(6, disabled.height() // 2).alpha() == 0


async def test_quants_that_do_not_fit_are_folded_below_those_that_do(desk: Desk) -> None:
    desk.parts.services.models.offers._ram_bytes = 8 * GIB
    await desk.parts.services.models.offers.refresh()
    offer = desk.parts.services.models.offers.state.value.find(HERO)
    assert offer is not None
    too_large = [quant.quant for quant in offer.quants if not quant.fit.fits]
    fitting = [quant.quant for quant in offer.quants if quant.fit.fits]
    if not desk.has(f"models.open.{HERO}"):
        show_all(desk)
    open_results(desk, HERO)
    await settle()
    fold = f"models.quants.{HERO}.fold"
    assert desk.text_of(fold) == f"Show {len(too_large)} that don't fit"
    assert all(desk.is_shown(f"models.get.{HERO}.{quant}") for quant in fitting)
    assert not any(desk.is_shown(f"models.get.{HERO}.{quant}") for quant in too_large)
    desk.click(fold)
    assert all(desk.is_shown(f"models.get.{HERO}.{quant}") for quant in too_large)
    desk.click(fold)
    assert not any(desk.is_shown(f"models.get.{HERO}.{quant}") for quant in too_large)


async def test_the_table_begins_with_the_quants_that_are_fastest_here(desk: Desk) -> None:
    open_results(desk, HERO)
    await settle()
    offer = desk.parts.services.models.offers.state.value.find(HERO)
    assert offer is not None
    tops = {quant.quant: desk.find(f"models.get.{HERO}.{quant.quant}", QPushButton).y() for quant in offer.quants}
    in_vram = [tops[quant.quant] for quant in offer.quants if quant.fit.kind == "vram"]
    with_experts_in_ram = [tops[quant.quant] for quant in offer.quants if quant.fit.kind == "experts"]
    assert max(in_vram) < min(with_experts_in_ram)


async def test_present_file_is_loaded_instead_of_downloaded(desk: Desk) -> None:
    tab_of(desk).show_statuses(FileStatuses({(REPO, PATH): "/models/x.gguf"}, frozenset()))
    assert desk.text_of(f"models.download.{HERO}") == "Load"
    desk.click(f"models.download.{HERO}")
    await desk.until(lambda: desk.parts.engine.state.requested is not None)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert Path(wanted.model) == Path("/models/x.gguf")
    await desk.until(lambda: desk.parts.engine.state.report is not None)


async def test_button_of_a_running_download_is_disabled(desk: Desk) -> None:
    tab_of(desk).show_statuses(FileStatuses({}, frozenset({(REPO, PATH)})))
    assert not desk.find(f"models.download.{HERO}", QPushButton).isEnabled()


async def test_status_without_gpu_says_so(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.devices = client.devices[1:]
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.parts.services.models.offers.state.value.state == "ready")
    assert "No usable GPU" in desk.text_of("models.pc.status")
    cards = desk.window.findChildren(OfferRow)
    texts = [label.text() for card in cards for label in card.findChildren(QLabel)]
    assert texts
    assert not [text for text in texts if "VRAM" in text or "video memory" in text or "GPUs" in text]


async def test_engine_failure_is_shown_and_can_be_retried(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.start_result = EngineExit(1, "A library is missing.")
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.parts.services.models.offers.state.value.state == "ready")
    assert "A library is missing." in desk.text_of("models.pc.status")
    client.start_result = None
    desk.click("models.pc.again")
    await desk.until(lambda: bool(desk.parts.services.models.offers.state.value.pc.gpus))
    assert "missing" not in desk.text_of("models.pc.status")


async def test_download_that_cannot_start_says_why(desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    try:
        desk.click(f"models.download.{HERO}")
        await desk.until(lambda: desk.is_shown("models.pc.problem"))
    finally:
        desk.parts.services.settings.change({"offline": False})
    assert "offline" in desk.text_of("models.pc.problem")


async def test_download_without_a_connection_can_be_retried(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = desk.parts.services.settings.options.hub_endpoint
    desk.parts.services.settings.change({"hub_endpoint": "http://127.0.0.1:9"})
    try:
        desk.click(f"models.download.{HERO}")
        await desk.until(lambda: desk.is_shown("models.pc.problem"))
    finally:
        desk.parts.services.settings.change({"hub_endpoint": before})
    assert desk.text_of("models.pc.problem") == "No connection to 127.0.0.1:9. Check your internet connection."
    assert desk.is_shown(f"models.card.{HERO}"), "the catalog needs no network"
    added: list[tuple[str, str, bool]] = []

    async def add(repo: str, path: str, *, with_mmproj: bool) -> None:
        added.append((repo, path, with_mmproj))

    monkeypatch.setattr(desk.parts.services.models.downloads, "add", add)
    desk.click("models.pc.problem.retry")
    await desk.until(lambda: not desk.is_shown("models.pc.problem"))
    assert added == [(REPO, PATH, True)]


async def test_changed_reserve_updates_the_offers(desk: Desk) -> None:
    machine = desk.find("models.machine", QLabel)
    assert "1.0 GB reserved" in machine.toolTip()
    desk.parts.services.settings.change({"reserve_gb": 4.0})
    try:
        await desk.until(lambda: desk.parts.services.models.offers.state.value.pc.reserve_bytes == 4 * GIB)
        assert "4.0 GB reserved" in machine.toolTip()
    finally:
        desk.parts.services.settings.change({"reserve_gb": 1.0})
    await desk.until(lambda: desk.parts.services.models.offers.state.value.pc.reserve_bytes == GIB)
