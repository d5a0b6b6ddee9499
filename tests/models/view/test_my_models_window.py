"""My models as a part of the whole window."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from qwendesk.core import paths
from qwendesk.core.units import GIB
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.models.fit import FitLabel
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import FakeHub
from tests.hub.verified import mxfp4, qwen, unsloth
from tests.window_desk import Desk

__all__ = ["fake_hub"]
REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_hub: FakeHub) -> Path:
    """A models folder of this test's own, and a Hub on the loopback."""
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    monkeypatch.setenv("HF_ENDPOINT", fake_hub.endpoint)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    return tmp_path / "ours"


async def opened(make_desk: Callable[[], Desk]) -> Desk:
    """The window, with every model looked at."""
    desk = make_desk()
    desk.window.show_page("models")
    await desk.parts.services.models.library.refresh()
    await desk.parts.services.models.checks.wait_until_settled()
    await desk.until(lambda: desk.has("models.my.1"))
    return desk


async def test_alert_above_the_offers_opens_my_models(make_desk: Callable[[], Desk], ours: Path) -> None:
    unsloth(ours / REPO / NAME, [mxfp4("blk.0.attn_qkv.weight")])
    desk = await opened(make_desk)
    await desk.until(lambda: desk.is_shown("models.alert.1"))
    assert desk.text_of("models.alert.1.state") == "Outdated"

    desk.click("models.tab.mine")
    await desk.until(lambda: desk.is_shown("models.my.1.fix"))

    assert not desk.is_shown("models.alert.1")
    assert desk.text_of("models.my.1.fix").startswith("Download the current file")


async def test_short_window_shows_one_alert_and_leaves_room_for_the_offers(
    make_desk: Callable[[], Desk], ours: Path
) -> None:
    for name in ("one.gguf", "two.gguf"):
        path = qwen(ours / "x" / "y-GGUF" / name)
        path.write_bytes(path.read_bytes()[:60])
    desk = await opened(make_desk)
    desk.window.resize(1280, 900)
    await desk.until(lambda: desk.is_shown("models.alert.2"))
    assert not desk.is_shown("models.alerts.more")

    desk.window.resize(1280, 560)
    await desk.until(lambda: not desk.is_shown("models.alert.2"))
    assert desk.is_shown("models.alert.1")
    assert desk.text_of("models.alerts.more") == "1 more file needs attention"


async def test_fix_that_needs_a_choice_searches_the_hub(
    make_desk: Callable[[], Desk], ours: Path, fake_hub: FakeHub
) -> None:
    path = qwen(ours / "x" / "y-GGUF" / "some.gguf", general__name="Unheard of")
    fake_hub.add("someone/Unheard-of-GGUF", "Unheard-of-Q4_K_M.gguf", path.read_bytes())
    path.write_bytes(path.read_bytes()[:60])
    fake_hub.add("x/y-GGUF", "other.gguf", b"GGUF")
    desk = await opened(make_desk)
    desk.click("models.tab.mine")
    await desk.until(lambda: desk.is_shown("models.my.1.fix"))
    model = desk.parts.services.models.list.state.value.entries[0]
    assert model.state.kind == "corrupt"

    desk.parts.navigation.model_search_asked.emit("x/y-GGUF")
    await desk.until(lambda: desk.parts.services.models.search.state.value.opened is not None)
    assert desk.parts.models_page.page().shown_tab == "hub"

    desk.parts.navigation.model_search_asked.emit("Unheard")
    await desk.until(lambda: bool(desk.parts.services.models.search.state.value.hits))
    assert desk.parts.services.models.search.state.value.opened is None


async def test_fit_of_a_model_is_the_same_in_my_models_and_in_the_picker(
    make_desk: Callable[[], Desk], ours: Path
) -> None:
    path = qwen(ours / REPO / NAME)
    desk = await opened(make_desk)
    desk.click("models.tab.mine")
    assert not desk.is_shown("models.my.1.fit"), "this PC isn't known yet"

    for free, text, tone in ((GIB // 5, "Tight in RAM", "warn"), (3 * GIB, "Fits in RAM", "good")):
        fit = FitLabel(
            kind="cpu", n_ctx=32_768, ram_bytes=16 * GIB - free, ram_room_bytes=16 * GIB, comfortable_ram_bytes=GIB
        )
        desk.parts.services.models.fits.state.set({str(path): fit})
        chip = desk.find("models.my.1.fit", QLabel)
        assert chip.isVisible()
        assert (chip.text(), chip.property("chip")) == (text, tone)
        desk.click("model.button")
        picker = desk.find("model.picker", QWidget)
        in_picker = picker.findChild(QLabel, "model.picker.fit")
        assert in_picker is not None
        assert (in_picker.text(), in_picker.property("chip")) == (text, tone)
        picker.close()
        await desk.until(lambda: not desk.has("model.picker"))
