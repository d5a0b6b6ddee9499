"""A window to take pictures of: built as the app builds it, driven without hands, saved as a small PNG."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from PySide6.QtCore import QBuffer, QIODevice, QRect
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from qwendesk.app.parts import Parts
from qwendesk.chat.view.answer.highlighter import Highlighter

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "guide" / "images"
MOST_BYTES = 120_000
_COLOURS = (256, 128, 64)
_LONGEST_S = 120.0


async def until(condition: Callable[[], bool]) -> None:
    """Let the window live until `condition` holds. Raises TimeoutError after two minutes."""
    async with asyncio.timeout(_LONGEST_S):
        while not condition():  # noqa: ASYNC110 - widgets tell nobody when they change
            await asyncio.sleep(0.01)


async def settle() -> None:
    """Layouts and animations end in Qt's own time."""
    await asyncio.sleep(0.6)


async def colours_shown(window: QWidget) -> None:
    """Return when no code in a window waits for its colours."""
    await until(lambda: not any(each.is_busy for each in window.findChildren(Highlighter)))


def find(parts: Parts, name: str) -> QWidget:
    found = parts.window.findChild(QWidget, name)
    if found is None:
        raise LookupError(f"nothing in the window is called {name}")
    return found


async def save(widget: QWidget, name: str, part: QRect | None = None) -> None:
    """`widget`, or `part` of it, as docs/guide/images/NAME.png with as few colours as keep it small.

    Raises ValueError when it is too large even so.
    """
    if not isinstance(widget.focusWidget(), QPlainTextEdit):
        widget.window().setFocus()  # no ring around a control that nobody chose
    await settle()
    await colours_shown(widget.window())
    pixels = widget.grab(part) if part is not None else widget.grab()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    pixels.save(buffer, "PNG")
    picture = Image.open(io.BytesIO(bytes(buffer.data().data()))).convert("RGB")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for colours in _COLOURS:
        small = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
        if len(small.getvalue()) < MOST_BYTES:
            (IMAGES / f"{name}.png").write_bytes(small.getvalue())
            print(f"  {name}.png, {picture.width} x {picture.height}, {len(small.getvalue()):,} bytes", flush=True)
            return
    raise ValueError(f"{name}.png has more than {MOST_BYTES:,} bytes")
