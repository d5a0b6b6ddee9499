"""For this PC on a made-up gaming PC, and what tests do with its table."""

from collections.abc import Callable

from PySide6.QtWidgets import QComboBox

from qwendesk.models.view.for_this_pc import ForThisPc
from qwendesk.models.view.offer_row import OfferRow
from tests.window_desk import Desk

HERO, MEASURED = "Qwen3.6-35B-A3B", "Qwen3.5-35B-A3B"
REPO = f"unsloth/{HERO}-GGUF"
PATH = f"{HERO}-UD-IQ4_XS.gguf"


def tab_of(desk: Desk) -> ForThisPc:
    tab = desk.window.findChild(ForThisPc)
    assert tab is not None
    return tab


async def open_tab(make_desk: Callable[[], Desk]) -> Desk:
    desk = make_desk()
    desk.click("rail.models")
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.is_shown(f"models.download.{HERO}"))
    return desk


def open_results(desk: Desk, model: str) -> None:
    """Open the details of a model, and the test results and the table of all files in them."""
    desk.click(f"models.open.{model}")
    desk.click(f"models.why.{model}")


def show_all(desk: Desk) -> None:
    """Show the models behind "Show more" too."""
    desk.click("models.more")


def shown_models(desk: Desk) -> list[str]:
    rows = [each for each in desk.window.findChildren(OfferRow) if each.isVisible()]
    return [each.offer.id for each in sorted(rows, key=lambda each: each.y())]


def pick(desk: Desk, model: str, quant: str) -> None:
    """Pick another file in the details of a model, as a click in the list does."""
    picker = desk.find(f"models.file.{model}", QComboBox)
    place = next(each for each in range(picker.count()) if picker.itemText(each).startswith(f"{quant} "))
    picker.setCurrentIndex(place)
    picker.activated.emit(place)
