"""The scene behind the guide's pictures of a spill and of the Engine page is played, and its texts are read.

Both pictures once contradicted themselves: the banner said "4 to 24 times slower" above answers that had become 1.8
times slower, and the Engine page knew no plan of the model that was loaded, and no CUDA beside a CUDA device.
"""

import asyncio
import re

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QLabel, QWidget

from qwendesk.widgets.theme_keeper import ThemeKeeper
from tools.screenshots import take


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The visible texts of each picture, which is read instead of saved."""
    texts: dict[str, list[str]] = {}

    async def read(widget: QWidget, name: str, _part: QRect | None = None) -> None:
        texts[name] = [each.text() for each in widget.findChildren(QLabel) if each.isVisible()]

    monkeypatch.setattr(take, "save", read)
    return texts


def after(label: str, texts: list[str]) -> str:
    """Return the text beside a label of the Engine page."""
    return texts[texts.index(label) + 1]


async def test_pictures_of_a_spill_and_of_the_engine_agree_with_themselves(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, shown: dict[str, list[str]]
) -> None:
    await take.gaming({"engine", "spill"})

    engine, spill = shown["engine"], shown["spill"]
    assert "Made when a model is loaded" not in engine
    assert "CUDA" in after("Backends", engine)
    assert after("CUDA0", engine).startswith("NVIDIA")
    assert "All numbers are the engine's own" in after("Numbers", engine)
    banner = next(text for text in spill if "sits in shared memory" in text)
    assert "times slower" not in banner
    now = re.findall(r"→ ([\d.]+) tok/s", banner)[0]
    assert f"{now} tok/s" in spill, "the meter shows the speed that the banner names"
