"""The tool that reads one page of the Internet, and its title and text, whatever format and encoding it has."""

import asyncio
import re
import ssl
import threading
import unicodedata
from collections.abc import Callable, Mapping
from email.message import Message
from urllib.request import getproxies

import httpcore2
import httpx2
import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import tr
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import DecodeRefusal, DecodeReply, DocumentText, PageText, ReadPage, ReadPdfText
from qwendesk.toolbox.tool import Arguments, ToolError
from qwendesk.toolbox.web.address import PublicConnections, checked_address, shown_host
from qwendesk.toolbox.web.fetcher import Fetched, fetch

_MOST_CHARACTERS = 16_000_000
_MOST_PDF_PAGES = 2_000
_DAMAGED_PAGE = "[This page is damaged and can't be read.]"
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
    """Return media type and charset. A format that the server does not name is judged by its first bytes."""
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
    text = "\n\n".join(_DAMAGED_PAGE if page is None else page for page in reply.split(content)).strip()
    if not text:
        raise ToolError("The PDF has no text: its pages are pictures.")
    return text


def _refusal(reply: DecodeReply) -> ToolError:
    match reply.reason if isinstance(reply, DecodeRefusal) else "failed":
        case "locked":
            return ToolError("The PDF is protected by a password.")
        case "too_many_pages" | "too_much_text" | "too_large" | "out_of_memory" | "time_limit":
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


# For the text of a page that is here. Pages made to be slow would take minutes; a PDF of 2,000 pages takes about 20 s.
READING_S = 20.0
# Characters that are kept free for the note on which part this is.
_ROOM_FOR_NOTE = 120
_LEAST_TEXT = 500
# Characters of the final address in the result.
_MOST_ADDRESS = 300


class Internet(msgspec.Struct, frozen=True):
    """How pages are reached."""

    connections: httpcore2.AsyncNetworkBackend
    """Judges IP addresses and connects to them."""
    ssl_context: ssl.SSLContext | None = None
    """Trusted certificates; None for those that the system trusts."""
    proxies: Callable[[], Mapping[str, str]] = getproxies
    """Returns the system's proxies, by scheme."""


def internet() -> Internet:
    return Internet(PublicConnections())


def preview(arguments: Arguments, options: AppOptions, internet: Internet) -> str:
    """Return what the user sees before consent. Looks nothing up. Raise ToolError for what is never read."""
    address = _address(arguments, options, internet)
    return "\n".join((tr("Reads a page of {0}.", shown_host(address)), tr("Address: {0}", str(address))))


async def run(arguments: Arguments, context: CallContext, options: AppOptions, internet: Internet) -> str:
    """Return title, address and text of a page, or the part of a long one that begins at the argument `offset`."""
    address = _address(arguments, options, internet)
    page = await fetch(address, internet.connections, ssl_context=internet.ssl_context)
    content = await _read(page)
    return _part(content, page.address, int(arguments.get("offset", 0)), context.most_characters)


async def _read(page: Fetched) -> PageContent:
    """Return what a page says. When it takes too long or the call is stopped, nothing goes on in the background."""
    is_over = threading.Event()
    try:
        async with asyncio.timeout(READING_S):
            return await asyncio.to_thread(read_content, page, is_over.is_set)
    except TimeoutError:
        raise ToolError("The text of this page can't be found in time. Try another page.") from None
    finally:
        is_over.set()


def _address(arguments: Arguments, options: AppOptions, internet: Internet) -> httpx2.URL:
    if options.offline:
        raise ToolError("QwenDesk is set to offline, so no page can be read. The user can change that in Settings.")
    if options.proxy or _has_proxy(internet.proxies()):
        raise ToolError(
            "Pages can't be read through a proxy, because only the proxy would know which computer it connects to. "
            "One is set in QwenDesk's settings or in the system."
        )
    return checked_address(str(arguments["url"]))


def _has_proxy(proxies: Mapping[str, str]) -> bool:
    is_off = proxies.get("no", "").strip() == "*"
    return not is_off and any(proxies.get(scheme) for scheme in ("http", "https", "all", "socks"))


def _part(content: PageContent, address: str, offset: int, most: int) -> str:
    """Return title, address, and the text from `offset` on, as much as fits into `most` characters."""
    shown = address if len(address) <= _MOST_ADDRESS else f"{address[:_MOST_ADDRESS]}…"
    head = "\n".join(filter(None, (content.title, shown, "\n")))
    n_all = len(content.text)
    if offset and offset >= n_all:
        raise ToolError(f"The page has {n_all:,} characters.")
    end = min(n_all, offset + max(_LEAST_TEXT, most - len(head) - _ROOM_FOR_NOTE))
    text = content.text[offset:end]
    if not offset and end == n_all:
        return f"{head}{text}"
    more = f"; read on with offset {end}" if end < n_all else ""
    return f"{head}{text}\n(characters {offset} to {end} of {n_all}{more})"
