"""The tab Hugging Face, driven as a user does, against a Hub of our own."""

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QFrame, QLabel, QLineEdit, QWidget

from qwendesk.hub import download_part
from tests.gguf_files import header_of, model_values, tensor
from tests.hub.hub_server import FakeHub, running_hub
from tests.window_desk import Desk

REPO = "someone/Model-4B-GGUF"
HUGE = "someone/Model-397B-abliterated-GGUF"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        header = header_of(model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
        hub.add(REPO, "Model-4B-Q4_K_M.gguf", header + bytes(40_000))
        hub.add(REPO, "Model-4B-Q8_0-00001-of-00002.gguf", header + bytes(50_000))
        hub.add(REPO, "Model-4B-Q8_0-00002-of-00002.gguf", header + bytes(50_000))
        hub.add(REPO, "mmproj-F16.gguf", b"m" * 2_000)
        hub.add(HUGE, "Model-397B-Q4_K_M.gguf", b"x")
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
        close_session()


async def open_tab(make_desk: Callable[[], Desk]) -> Desk:
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.parts.services.models.offers.state.value.state == "ready")
    desk.click("models.tab.hub")
    return desk


@pytest.fixture
def desk(qt_loop: asyncio.Runner, hub: FakeHub, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_tab(make_desk))


async def search(desk: Desk, words: str) -> None:
    query = desk.find("hub.query", QLineEdit)
    query.setText(words)
    QTest.keyClick(query, Qt.Key.Key_Return)
    await desk.until(lambda: desk.parts.services.models.search.state.value.state in ("done", "failed"))


async def test_search_then_open_shows_files_with_sizes_and_fit(hub: FakeHub, desk: Desk) -> None:
    await search(desk, "model")
    assert desk.is_shown(f"hub.hit.{REPO}")
    desk.click(f"hub.open.{REPO}")
    await desk.until(lambda: desk.has("hub.fit.Model-4B-Q4_K_M") and desk.is_shown("hub.fit.Model-4B-Q4_K_M"))
    assert "Fits in VRAM with vision" in desk.text_of("hub.fit.Model-4B-Q4_K_M")
    assert desk.is_shown("hub.get.Model-4B-Q8_0")
    texts = [label.text() for label in desk.window.findChildren(QLabel) if label.isVisible()]
    assert any("2 shards" in text for text in texts)
    assert "layers" in desk.text_of("hub.repo.facts")
    desk.click("hub.back")
    assert desk.is_shown(f"hub.hit.{REPO}")


async def test_a_file_for_another_program_names_it(hub: FakeHub, desk: Desk) -> None:
    """As prism-ml's Ternary-Bonsai, beside a quant that runs here."""
    hub.add("someone/Tern-4B-gguf", "Tern-4B-PQ2_0.gguf", header_of(model_values()) + bytes(20_000))
    hub.add("someone/Tern-4B-gguf", "Tern-4B-Q4_K_M.gguf", header_of(model_values()) + bytes(40_000))
    await search(desk, "Tern")
    desk.click("hub.open.someone/Tern-4B-gguf")
    await desk.until(lambda: desk.has("hub.fit.Tern-4B-Q4_K_M") and desk.is_shown("hub.fit.Tern-4B-Q4_K_M"))

    texts = [label.text() for label in desk.window.findChildren(QLabel) if label.isVisible()]
    assert [text for text in texts if "PrismML" in text] == [
        "Not for QwenDesk, but for PrismML's llama.cpp (github.com/PrismML-Eng/llama.cpp)."
    ]
    assert not desk.is_shown("hub.fit.Tern-4B-PQ2_0")


async def test_the_header_says_whether_mtp_is_inside(hub: FakeHub, make_desk: Callable[[], Desk]) -> None:
    values = model_values(qwen35moe__block_count=41, qwen35moe__nextn_predict_layers=1)
    hub.add("someone/New-4B-GGUF", "New-4B-Q4_K_M.gguf", header_of(values) + bytes(40_000))
    desk = await open_tab(make_desk)
    await search(desk, "new")
    desk.click("hub.open.someone/New-4B-GGUF")
    await desk.until(lambda: desk.has("hub.repo.facts") and "layers" in desk.text_of("hub.repo.facts"))
    assert "40 layers · MTP inside" in desk.text_of("hub.repo.facts")


async def test_models_that_do_not_fit_can_be_hidden(hub: FakeHub, desk: Desk) -> None:
    await search(desk, "model")
    row = desk.find(f"hub.hit.{HUGE}", QFrame)
    texts = [label.text() for label in row.findChildren(QLabel)]
    assert "abliterated" in texts
    assert "Too large for this PC" in texts
    desk.click("hub.fits")
    assert not desk.is_shown(f"hub.hit.{HUGE}")
    assert desk.is_shown(f"hub.hit.{REPO}")


async def test_exact_name_opens_the_repository(hub: FakeHub, desk: Desk) -> None:
    query = desk.find("hub.query", QLineEdit)
    query.setText(REPO)
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.get.Model-4B-Q4_K_M"))
    assert desk.text_of("hub.repo.name") == REPO


async def test_a_licence_that_restricts_is_above_the_files(hub: FakeHub, make_desk: Callable[[], Desk]) -> None:
    repo = "someone/Qwen3.8-Flash-Next-GGUF"
    hub.add(repo, "Qwen3.8-Flash-Next-UD-IQ1_S.gguf", b"x")
    desk = await open_tab(make_desk)
    query = desk.find("hub.query", QLineEdit)
    for name, shown in ((repo, True), (REPO, False)):
        query.setText(name)
        desk.click("hub.search")
        await desk.until(lambda name=name: desk.has("hub.files") and desk.text_of("hub.repo.name") == name)
        assert desk.is_shown("hub.repo.licence") is shown
        assert ("needs a separate licence" in desk.text_of("hub.repo.licence")) is shown


async def test_missing_repository_is_reported(hub: FakeHub, desk: Desk) -> None:
    query = desk.find("hub.query", QLineEdit)
    query.setText("someone/nothing-here")
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.repo.problem"))
    assert "no repository someone/nothing-here" in desk.text_of("hub.repo.problem")
    desk.click("hub.back")
    assert desk.find("hub.search", QAbstractButton).isVisible()


async def test_models_of_the_catalog_are_shown_before_anything_is_typed(hub: FakeHub, desk: Desk) -> None:
    await desk.until(lambda: desk.is_shown("hub.hit.unsloth/Qwen3.5-9B-GGUF"))
    texts = [label.text() for label in desk.find("hub.hit.unsloth/Qwen3.5-9B-GGUF", QFrame).findChildren(QLabel)]
    assert any(text.startswith("9B dense") for text in texts)
    assert not hub.requests("GET"), "the catalog needs no network"


async def test_search_without_a_connection_can_be_retried(hub: FakeHub, desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    try:
        await search(desk, "4b")
        await desk.until(lambda: desk.is_shown("hub.retry"))
        assert desk.is_shown("hub.hit.unsloth/Qwen3.5-4B-GGUF"), "there is something to look at"
        desk.click("hub.open.unsloth/Qwen3.5-4B-GGUF")
        await desk.until(lambda: desk.is_shown("hub.repo.retry"))
        assert desk.is_shown("hub.get.Qwen3.5-4B-Q4_K_M"), "the catalog knows the files"
        desk.click("hub.back")
    finally:
        desk.parts.services.settings.change({"offline": False})
    desk.click("hub.retry")
    await desk.until(lambda: desk.is_shown(f"hub.hit.{REPO}"))
    assert not desk.is_shown("hub.retry")


async def test_offline_the_built_in_list_shows_what_was_searched_for(hub: FakeHub, desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    status = desk.find("hub.status", QLabel)
    try:
        await search(desk, "qwen3.5 35b")
        cards = [card.objectName() for card in desk.window.findChildren(QFrame)]
        shown = [name for name in cards if name.startswith("hub.hit.")]
        assert shown
        assert all("35b" in name.lower() for name in shown)
        assert "offline" in status.text()
        assert "The built-in list below works offline." in status.text()
        await search(desk, "no such model")
        await desk.until(lambda: "The built-in list has nothing for “no such model”." in status.text())
    finally:
        desk.parts.services.settings.change({"offline": False})


async def test_search_without_results_says_so(hub: FakeHub, desk: Desk) -> None:
    await search(desk, "zebra")
    assert "No GGUF models" in desk.text_of("hub.status")
    assert "zebra" in desk.text_of("hub.status")


async def test_download_from_a_repository_joins_the_queue(hub: FakeHub, desk: Desk) -> None:
    desk.find("hub.query", QLineEdit).setText(REPO)
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.get.Model-4B-Q4_K_M"))
    desk.click("hub.get.Model-4B-Q4_K_M")
    queue = desk.parts.services.models.downloads._queue
    await desk.until(lambda: bool(queue.items))
    item = queue.items[0]
    assert [each.file.path for each in item.saved.files] == ["Model-4B-Q4_K_M.gguf", "mmproj-F16.gguf"]
    queue.cancel(item.saved.id)


async def test_button_shows_failed_downloads_and_flagged_files(
    hub: FakeHub, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, get = desk.parts.services.models, "hub.get.Model-4B-Q4_K_M"
    models.downloads.start()
    desk.find("hub.query", QLineEdit).setText(REPO)
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown(get))
    with monkeypatch.context() as full_disk:
        full_disk.setattr(download_part, "free_bytes", lambda _folder: 1000)
        desk.click(get)
        await desk.until(lambda: desk.text_of(get) == "Retry")
        assert "are missing" in desk.find(get, QAbstractButton).toolTip()
    desk.click(get)
    await desk.until(lambda: desk.text_of(get) == "Load")
    (model,) = (each for each in models.library.current.models if each.repo == REPO)
    os.truncate(model.path, 17_000)
    await models.library.refresh()
    await desk.until(lambda: desk.text_of(get) == "Fix")
    desk.click(get)
    await desk.until(lambda: desk.is_shown("models.my.1"))


async def test_changed_sort_order_searches_again(hub: FakeHub, desk: Desk) -> None:
    await search(desk, "model")
    action = desk.window.findChild(QAction, "hub.sort.likes")
    assert action is not None
    action.trigger()
    await desk.until(lambda: desk.parts.services.models.search.state.value.sort == "likes")
    await desk.until(lambda: desk.parts.services.models.search.state.value.state == "done")
    assert desk.text_of("hub.sort") == "Most liked"
    assert [path for path in hub.requests("GET") if "sort=likes" in path]


@pytest.mark.parametrize(
    ("pasted", "first"),
    [
        (f"{REPO}:Q8_0", "Q8_0"),
        (f"hf.co/{REPO}:Q4_K_M", "Q4_K_M"),
        (f"llama-server -hf {REPO}:Q4_K_M -c 65536 --n-cpu-moe 20", "Q4_K_M"),
        (f"https://huggingface.co/{REPO}/blob/main/Model-4B-Q8_0-00001-of-00002.gguf", "Q8_0"),
    ],
)
async def test_a_pasted_name_or_link_opens_the_repository_with_its_file_first(
    hub: FakeHub, desk: Desk, pasted: str, first: str
) -> None:
    desk.find("hub.query", QLineEdit).setText(pasted)
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.repo.named"))
    assert desk.text_of("hub.repo.name") == REPO
    assert "first" in desk.text_of("hub.repo.named")
    rows = desk.find("hub.files", QWidget).findChildren(QAbstractButton)
    gets = sorted((button for button in rows if button.objectName().startswith("hub.get.")), key=lambda each: each.y())
    assert first in gets[0].objectName()


async def test_a_quant_that_could_mean_two_files_is_said(hub: FakeHub, desk: Desk) -> None:
    """As ISTA-DASLab's IQ3_S: with the MTP layer inside, and without."""
    for name in ("Twin-4B-GSQ-RCO-IQ3_S.gguf", "Twin-4B-GSQ-RCO-IQ3_S-mtp.gguf", "Twin-4B-GSQ-RCO-IQ2_S.gguf"):
        hub.add("someone/Twin-4B-GGUF", name, header_of(model_values()) + bytes(40_000))
    desk.find("hub.query", QLineEdit).setText("someone/Twin-4B-GGUF:IQ3_S")
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.repo.named"))

    said = desk.text_of("hub.repo.named")
    assert said == "You named IQ3_S: it's the first. IQ3_S could mean Twin-4B-GSQ-RCO-IQ3_S-mtp too."
    assert desk.is_shown("hub.get.Twin-4B-GSQ-RCO-IQ3_S")
    assert desk.is_shown("hub.get.Twin-4B-GSQ-RCO-IQ3_S-mtp")


async def test_a_quant_that_is_not_there_is_said(hub: FakeHub, desk: Desk) -> None:
    desk.find("hub.query", QLineEdit).setText(f"{REPO}:UD-Q9_XL")
    desk.click("hub.search")
    await desk.until(lambda: desk.is_shown("hub.repo.named"))
    assert desk.text_of("hub.repo.named") == "UD-Q9_XL isn't here."
