"""My models as a part of the whole window."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.hub.folders import ModelFolders, write_folders
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import FakeHub
from tests.hub.verified import mxfp4, qwen, unsloth
from tests.ui.desk import Desk

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
    await desk.parts.models.models.refresh()
    await desk.parts.models.library.services.checks.settled()
    await desk.until(lambda: desk.has("models.my.1"))
    return desk


async def test_an_alert_stands_above_the_offers_and_leads_to_the_list(
    make_desk: Callable[[], Desk], ours: Path
) -> None:
    unsloth(ours / REPO / NAME, [mxfp4("blk.0.attn_qkv.weight")])
    desk = await opened(make_desk)
    await desk.until(lambda: desk.is_shown("models.alert.1"))
    assert desk.text_of("models.alert.1.state") == "Outdated"

    desk.click("models.tab.mine")
    await desk.until(lambda: desk.is_shown("models.my.1.fix"))

    assert not desk.is_shown("models.alert.1")
    assert desk.text_of("models.my.1.fix").startswith("Download the present file")


async def test_what_only_a_person_can_choose_is_looked_for_on_the_hub(
    make_desk: Callable[[], Desk], ours: Path, fake_hub: FakeHub
) -> None:
    path = qwen(ours / "x" / "y-GGUF" / "some.gguf", general__name="Unheard of")
    fake_hub.add("someone/Unheard-of-GGUF", "Unheard-of-Q4_K_M.gguf", path.read_bytes())
    path.write_bytes(path.read_bytes()[:60])
    fake_hub.add("x/y-GGUF", "other.gguf", b"GGUF")
    desk = await opened(make_desk)
    desk.click("models.tab.mine")
    await desk.until(lambda: desk.is_shown("models.my.1.fix"))
    model = desk.parts.models.library.bridge.entries[0]
    assert model.state.kind == "corrupt"

    desk.parts.models.library.bridge.search_asked.emit("x/y-GGUF")
    await desk.until(lambda: desk.parts.models.search.state.opened is not None)
    assert desk.parts.models.page.shown_tab == "hub"

    desk.parts.models.library.bridge.search_asked.emit("Unheard")
    await desk.until(lambda: bool(desk.parts.models.search.state.hits))
    assert desk.parts.models.search.state.opened is None
