"""Pages as people write them."""

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.services.documents.page_range import parse_pages, show_pages


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
def test_what_is_meant(text: str, pages: tuple[int, ...]) -> None:
    assert parse_pages(text, 5) == pages


@pytest.mark.parametrize("text", ["x", "1,,2", "3-1", "0", "-", "6", "4-9", "1 2"])
def test_what_is_not_there_or_no_page_says_so(text: str) -> None:
    with pytest.raises(BadRequest, match="page"):
        parse_pages(text, 5)


def test_pages_are_shown_as_they_are_written() -> None:
    assert show_pages((1, 2, 3, 7)) == "1-3, 7"
    assert parse_pages(show_pages((4, 5, 1)), 5) == (4, 5, 1)
