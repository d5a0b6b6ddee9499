"""Page ranges as users write them."""

import pytest

from qwendesk.chat.documents.pdf import parse_pages, show_pages
from qwendesk.core.errors import BadRequest


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("", (1, 2, 3, 4, 5)),
        ("2", (2,)),
        ("1-3, 5", (1, 2, 3, 5)),
        (" 4 - 5 ;1", (4, 5, 1)),
        ("3-", (3, 4, 5)),
        ("-2", (1, 2)),
        ("2, 1-3", (2, 1, 3)),
        ("1–2", (1, 2)),
    ],
)
def test_page_ranges_are_parsed(text: str, pages: tuple[int, ...]) -> None:
    assert parse_pages(text, 5) == pages


@pytest.mark.parametrize("text", ["x", "1,,2", "3-1", "0", "-", "6", "4-9", "1 2"])
def test_invalid_ranges_and_missing_pages_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="page"):
        parse_pages(text, 5)


def test_pages_are_shown_as_ranges() -> None:
    assert show_pages((1, 2, 3, 7)) == "1-3, 7"
    assert parse_pages(show_pages((4, 5, 1)), 5) == (4, 5, 1)
