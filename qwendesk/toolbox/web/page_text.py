"""What a fetched page says: its title and text, whatever format and encoding it has. All functions block."""

import re
import unicodedata
from collections.abc import Callable
from email.message import Message

import msgspec

from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import DecodeRefusal, DecodeReply, DocumentText, PageText, ReadPage, ReadPdfText
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.fetcher import Fetched

_MOST_CHARACTERS = 16_000_000
_MOST_PDF_PAGES = 2_000
_MOST_TITLE = 200
_TEXT_TYPES = re.compile(
    r"text/.+|application/((.+\+)?(json|xml|yaml)|ld\+json|x-ndjson|javascript|x-yaml|toml|sql|rtf|x-sh)"
)
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_UNKNOWN_TYPES = ("", "application/octet-stream", "binary/octet-stream")
_HEAD_BYTES = 1024


class PageContent(msgspec.Struct, frozen=True):
    title: str
    """Empty if the page has none."""
    text: str


def read_content(page: Fetched, is_cancelled: Callable[[], bool]) -> PageContent:
    """Return title and text of a page. Raise ToolError if it has none that can be read, or if it was cancelled."""
    kind, charset = _type_of(page)
    if kind == "application/pdf":
        return PageContent("", readable(_pdf_text(page.content, is_cancelled)))
    if kind in _HTML_TYPES:
        return _html_content(decode_page(page.content, charset), is_cancelled)
    if _TEXT_TYPES.fullmatch(kind):
        text = readable(decode_page(page.content, charset))
        if not text.strip():
            raise ToolError("The page is empty.")
        return PageContent("", text)
    raise ToolError(f"There is no text at this address, but {kind}. Only web pages, texts and PDF files can be read.")


def _type_of(page: Fetched) -> tuple[str, str]:
    """Return media type and charset. What the server does not name is judged by its first bytes."""
    header = Message()
    header["Content-Type"] = page.content_type
    kind = header.get_content_type() if page.content_type.strip() else ""
    charset = header.get_content_charset() or ""
    head = page.content[:_HEAD_BYTES].lstrip()
    if head.startswith(b"%PDF-"):
        return "application/pdf", ""
    if kind not in _UNKNOWN_TYPES:
        return kind, charset
    is_html = re.match(rb"(?i)<(!doctype html|html|head|body)\b", head)
    is_binary = b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return "text/html" if is_html else "a binary file" if is_binary else "text/plain", charset


def _html_content(source: str, is_cancelled: Callable[[], bool]) -> PageContent:
    reply, text = run_decoder(source.encode("utf-8", "replace"), ReadPage(_MOST_CHARACTERS), is_cancelled)
    if not isinstance(reply, PageText):
        raise _refusal(reply)
    content = PageContent(readable(reply.title)[:_MOST_TITLE], readable(text.decode("utf-8", "replace")).strip())
    if not content.text:
        raise ToolError("The page has no text without its scripts, which are not run. Try another page.")
    return content


def _pdf_text(data: bytes, is_cancelled: Callable[[], bool]) -> str:
    reply, content = run_decoder(data, ReadPdfText((), _MOST_PDF_PAGES, _MOST_CHARACTERS), is_cancelled)
    if not isinstance(reply, DocumentText):
        raise _refusal(reply)
    pages, start = [], 0
    for length in reply.lengths:
        pages.append(content[start : start + length].decode("utf-8", "replace"))
        start += length
    text = "\n\n".join(pages).strip()
    if not text:
        raise ToolError("The PDF has no text: its pages are pictures.")
    return text


def _refusal(reply: DecodeReply) -> ToolError:
    match reply.reason if isinstance(reply, DecodeRefusal) else "failed":
        case "locked":
            return ToolError("The PDF is protected by a password.")
        case "too_many_pages" | "too_much_text" | "out_of_memory" | "time_limit":
            return ToolError("The page is too large to be read.")
        case _:
            return ToolError("The page is damaged and can't be read.")


_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# Names of encodings that pages have. Python knows more, of which some are no encodings of texts, or slow.
_KNOWN = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?\d|windows-?125\d|cp125\d|koi8-[ru]|macintosh|"
    r"gb2312|gbk|gb18030|big5(-hkscs)?|shift_?jis|sjis|euc-?(jp|kr)|iso-2022-jp|windows-?(874|31j)|tis-620|x-sjis"
)
# Texts in these can be valid UTF-8 without meaning that.
_NOT_LIKE_UTF_8 = ("utf-16", "utf16", "iso-2022")
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]{2,20})", re.IGNORECASE)
_DECLARATION_BYTES = 4096
# Characters that are looked at together: few, so that the window's thread gets its turn while a long text is read.
_PIECE = 50_000
# Unicode's categories: control characters, marks of format, halves of pairs, private use.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co")
# The last two join letters or keep them apart, in Persian, Hindi and emoji.
_KEPT_INVISIBLE = "\n\t\u200c\u200d"


def decode_page(raw: bytes, charset: str) -> str:
    """Return the text of a page. `charset` is what the server says it is, which is often wrong; "" if it doesn't."""
    mark = next((encoding for mark, encoding in _MARKS if raw.startswith(mark)), "")
    declared = _DECLARED.search(raw[:_DECLARATION_BYTES])
    named = [_known(charset), _known(declared[1].decode("ascii") if declared else "")]
    first = [mark, *(name for name in named if name.startswith(_NOT_LIKE_UTF_8))]
    for encoding in filter(None, (*first, "utf-8", *named)):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeError):
            continue
    return raw.decode("cp1252", "replace")


def readable(text: str) -> str:
    """Return a text with plain line ends and without invisible characters, which can hide instructions."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return "".join(_without_invisible(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))


def _without_invisible(text: str) -> str:
    invisible = {ord(c): None for c in set(text) if unicodedata.category(c) in _INVISIBLE and c not in _KEPT_INVISIBLE}
    return text.translate(invisible) if invisible else text


def _known(name: str) -> str:
    name = name.strip().strip("\"'").lower()
    return name if _KNOWN.fullmatch(name) else ""
