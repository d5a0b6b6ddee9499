"""Citations in the user's language."""

from qwendesk.core.citations import Citation
from qwendesk.core.translation import tr


def place_text(citation: Citation) -> str:
    """Return where in its file a citation is, such as "page 3, lines 10-24"."""
    lines = _lines_text(citation)
    match citation.unit:
        case "page":
            return tr("page {0}, {1}", citation.at, lines)
        case "slide":
            return tr("slide {0}, {1}", citation.at, lines)
        case "sheet":
            return tr("sheet {0}, {1}", citation.at, lines)
        case "chapter":
            return tr("chapter {0}, {1}", citation.at, lines)
        case "":
            return lines


def _lines_text(citation: Citation) -> str:
    first, last = citation.first, citation.last
    match citation.lines:
        case "rows":
            return tr("row {0}", first) if first == last else tr("rows {0}-{1}", first, last)
        case "paragraphs":
            return tr("paragraph {0}", first) if first == last else tr("paragraphs {0}-{1}", first, last)
        case _:
            return tr("line {0}", first) if first == last else tr("lines {0}-{1}", first, last)
