"""The text of HTML, as chapters of e-books have it."""

import re
from html.parser import HTMLParser

_HIDDEN = frozenset({"script", "style", "title", "template"})
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "h1", "h2",
        "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
    }
)  # fmt: skip


class _HtmlText(HTMLParser):
    """Keeps the text of a page, with a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        self.pieces.append("\n" if tag in _BLOCKS else "\t" if tag in ("td", "th") else "")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and self._hidden[-1] == tag:
            self._hidden.pop()
        self.pieces.append("\n" if tag in _BLOCKS else "")

    def handle_startendtag(self, tag: str, _attributes: object) -> None:
        self.pieces.append("\n" if tag in _BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(re.sub(r"\s+", " ", data))


def html_text(source: str) -> str:
    """Return the text of an HTML page, one line for each block."""
    parser = _HtmlText()
    parser.feed(source)
    parser.close()
    lines = (line.strip() for line in "".join(parser.pieces).split("\n"))
    return "\n".join(line for line in lines if line)
