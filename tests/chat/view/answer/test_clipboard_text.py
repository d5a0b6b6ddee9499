"""A copied message is as inert where it is pasted as it is in the window."""

import pytest
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer.clipboard_text import copy_in_steps


@pytest.mark.parametrize("n_before", [0, 2_000])
def test_pictures_are_copied_as_their_words(app: QApplication, n_before: int) -> None:
    """A mail program would load them, and their addresses may tell what a hostile text wanted to know."""
    evil = "https://evil.example/x.png"
    written = f"Before ![a **chart**]({evil}?notes=1), ![]({evil}) \ufffc <img src={evil}>.\n\n![alone]({evil})"
    list(copy_in_steps(f"{'Many words. ' * n_before}\n\n{written}", "rich"))
    content = QApplication.clipboard().mimeData()
    assert "<img" not in content.html()
    assert "notes" not in content.html()
    assert "Before a chart," in content.text()
    assert "a chart" in content.html()


def test_other_text_is_copied_as_it_looks(app: QApplication) -> None:
    list(copy_in_steps("**Bold**, ![*one*](a.png) *and* [a link](https://example.org).", "rich"))
    html = QApplication.clipboard().mimeData().html()
    assert 'href="https://example.org"' in html
    assert html.count("font-weight:700") == 1
    assert QApplication.clipboard().text() == "Bold, one and a link."
