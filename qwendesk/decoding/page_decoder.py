"""Reads title and text of one web page, or of a chapter of an e-book. Runs in the decoding process only.

The parser is libxml2's, which repairs what browsers repair. What is around the text (menus, footers, scripts, what is
hidden) is left out by the elements and roles that HTML has for it, so nothing is lost to a guess about a page's look.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from lxml import etree, html

from qwendesk.decoding.protocol import MAX_FILE_BYTES, DecodeRefusal, DecodeRefused, PageText, ReadPage

_LEFT_OUT = frozenset(
    {
        "audio", "button", "canvas", "datalist", "dialog", "embed", "footer", "head", "iframe", "input", "nav",
        "noscript", "object", "option", "script", "select", "style", "svg", "template", "textarea", "video",
    }
)  # fmt: skip
_LEFT_OUT_ROLES = ("navigation", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar")
_HIDDEN_STYLE = re.compile(
    r"(?i)(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*(?:\.0*)?\s*(?:;|$)"
    r"|font-size\s*:\s*0)"
)
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "div", "dl",
        "dt", "fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
        "legend", "li", "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "thead", "tr", "ul",
    }
)  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# Of the text of the whole page, for what the page calls its main part to be taken as such.
_SMALLEST_SHARE = 0.3


def decode_page(file: BinaryIO, request: ReadPage) -> tuple[PageText | DecodeRefusal, bytes]:
    """Return the reply to `request`, and the text that follows it. The file is HTML in UTF-8."""
    page = _parsed(file.read(MAX_FILE_BYTES))
    if page is None:
        return PageText(""), b""
    title = " ".join((page.findtext(".//title") or "").split())
    text = _main_text(page)
    if len(text) > request.max_characters:
        return DecodeRefusal(reason="too_much_text"), b""
    return PageText(title), text.encode("utf-8", "replace")


def html_text(source: bytes) -> str:
    """Return all text that an HTML page in UTF-8 shows, one line for each block."""
    page = _parsed(source)
    return "" if page is None else _text_of(page).strip()


def _parsed(source: bytes) -> Any:
    """Return the root element of a page; None if there are only blanks and comments.

    Raise DecodeRefused for one that libxml2 reads only the beginning of.
    """
    # Without `huge_tree`, all that follows the 256th element inside another, or 10 MB of one text, is left out.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        page = html.document_fromstring(source, parser=parser) if source.strip() else None
    except etree.ParserError:
        return None
    if any(each.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for each in parser.error_log):
        raise DecodeRefused(DecodeRefusal(reason="too_large", detail="it is nested too deeply"))
    return page


def _is_left_out(element: Any) -> bool:
    if element.tag in _LEFT_OUT:
        return True
    attributes = element.attrib
    return bool(attributes) and bool(
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in _LEFT_OUT_ROLES
        or _HIDDEN_STYLE.search(attributes.get("style", ""))
    )


def _main_text(page: Any) -> str:
    """Return the text of what the page says is its main part, or of all of it if that would be too little."""
    whole = _text_of(page)
    for path in (".//main", './/*[@role="main"]', ".//article"):
        found = page.findall(path)
        if len(found) == 1 and len(text := _text_of(found[0])) >= _SMALLEST_SHARE * len(whole):
            return text
    return whole


def _text_of(root: Any) -> str:
    """Return the text that shows, a line for each block, with headings and list entries marked as in Markdown."""
    pieces: list[str] = []
    n_pre = 0
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag, is_start = element.tag, event == "start"
        if not isinstance(tag, str):  # an entity that HTML does not have
            continue
        n_pre += (1 if is_start else -1) if tag == "pre" else 0
        if tag in _BLOCKS:
            pieces.append("\n")
        if not is_start:
            pieces.append(" | " if tag in ("td", "th") and element.getnext() is not None else "")
            pieces.append("" if element is root else _spaced(element.tail, is_pre=n_pre > 0))
        elif _is_left_out(element):
            walk.skip_subtree()
        else:
            pieces.append(_HEADINGS.get(tag) or ("- " if tag == "li" else ""))
            pieces.append(_spaced(element.text, is_pre=n_pre > 0))
    return "\n".join(_lines("".join(pieces)))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that say something, with a blank one before each heading."""
    marker = ""
    for line in text.split("\n"):
        stripped = line.strip(" \t|")
        if stripped == "-" or (stripped and not stripped.strip("#")):  # what it marks is in the next line
            marker = f"{stripped} "
        elif stripped:
            shown = f"{marker}{line.rstrip() if line.startswith('  ') and not marker else line.strip()}"
            if shown.startswith("#"):
                yield ""
            yield shown
            marker = ""


def _spaced(text: str | None, *, is_pre: bool) -> str:
    if not text:
        return ""
    return text.expandtabs(4).replace("\r", "") if is_pre else re.sub(r"\s+", " ", text)
