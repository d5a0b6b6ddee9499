"""Markdown as models write it: beside Chinese, with tags, and with code blocks in code blocks."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.markdown_stream import MarkdownStream
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.chat.view.answer.drawn import drawn_text
from tests.field.grid import SERVER, Kind, Way, case

_CANNOT = dict.fromkeys((Way.CLI, *SERVER, Way.MCP), "only the window and the exports read Markdown")
_TESTED = _CANNOT | {Way.IMPORT: "an import keeps the text; the window draws it as its own"}
STARS = Kind("Emphasis beside Chinese, Japanese or Korean shows its stars, or the wrong words become bold", _TESTED)
ADDRESSES = Kind("A bare address takes the punctuation behind it into the link", _TESTED)
TAGS = Kind("Tags that models write for want of Markdown are shown as text", _TESTED)
FENCES = Kind("A code block of Markdown ends at the first fence inside of it", _TESTED)

Show = Callable[[str], str]


@pytest.fixture
def show(keeper: ThemeKeeper, app: QApplication) -> Iterator[Show]:
    """Draw a text whole and as a stream, in which each character is drawn before the next."""
    page = QWidget()
    page.resize(800, 600)
    page.show()

    def draw(text: str) -> str:
        whole, streamed = AnswerView(page), AnswerView(page)
        for view in (whole, streamed):
            view.resize(700, 100)
            view.show()
        whole.show_whole(text)
        for character in text:
            streamed.add(character)
            streamed.draw_now()
        streamed.finish()
        app.processEvents()
        assert drawn_text(streamed) == drawn_text(whole)
        return drawn_text(whole)

    yield draw
    page.deleteLater()


EMPHASIS = {
    "opencode#38490": ("含**「重点」**内容", "含<b>「重点」</b>内容"),
    "markdown-it#1013": ("**开源：**代码是公开的", "<b>开源：</b>代码是公开的"),
    "qwen-code#9456": (
        '这是**"取出并重置"（take-and-reset）模式**。',
        '这是<b>"取出并重置"（take-and-reset）模式</b>。',
    ),
    "qwen-code#9456, curly": ("这是**“取出并重置”模式**。", "这是<b>“取出并重置”模式</b>。"),
    "qwen-code#9456, sentence": ("**该星号不会被识别。**这是因为", "<b>该星号不会被识别。</b>这是因为"),
    "future-os#744": ("**复现：**10 轮对话", "<b>复现：</b>10 轮对话"),
    "marked#3968": ("**“如何更好地服务你”**", "<b>“如何更好地服务你”</b>"),
    "multiplatform-markdown-renderer#579": ("**加粗测试（含括号）**", "<b>加粗测试（含括号）</b>"),
    "DeepSeek-Reasonix#2476": ("**我叫Reasonix，**一个助手", "<b>我叫Reasonix，</b>一个助手"),
    "Korean": ("**이 용어(This term)**를 강조해", "<b>이 용어(This term)</b>를 강조해"),
    "Japanese with Latin brackets": ("**強調(English)?**残念", "<b>強調(English)?</b>残念"),
    "code inside": ("我可以强调**这个`code`**吗", "我可以强调<b>这个</b><b><kbd>code</kbd></b><b></b>吗"),
    "a label in English": ("**Note:**text and **more:** text", "<b>Note:</b>text and <b>more:</b> text"),
    "the wrong words": ("**提示：**先看**重点**，再做", "<b>提示：</b>先看<b>重点</b>，再做"),
    "the wrong words, three": ("**a：**b，**c：**d", "<b>a：</b>b，<b>c：</b>d"),
    "an ideograph with a variant": ("葛\U000e0100**(地名)**", "葛\U000e0100<b>(地名)</b>"),
    "a character with a variant": ("中\ufe00**(x)**很", "中\ufe00<b>(x)</b>很"),
    "a wide quotation mark": ("**‘\ufe01你好’\ufe01**Qwen说", "<b>‘\ufe01你好’\ufe01</b>Qwen说"),
    "emoji are no letters": ("**a.**🎉 b**", "<b>a.</b>🎉 b**"),
}


@case(STARS, Way.WINDOW, report="opencode#38490, markdown-it#1013, qwen-code#9456 and six more", before="failed")
@pytest.mark.parametrize(("text", "shown"), EMPHASIS.values(), ids=list(EMPHASIS))
def test_emphasis_begins_and_ends_where_its_writer_meant(show: Show, text: str, shown: str) -> None:
    assert show(text) == shown.replace("<b></b>", "")


@case(STARS, Way.WINDOW, report="future-os#675", before="failed")
def test_no_half_mark_is_seen_while_an_answer_streams() -> None:
    stream = MarkdownStream()
    for character in "含**「重点」**内容，**提示：**正文 **x** H<sub>2</sub>O, <kbd>Q</kbd>, a<br>b":
        (block,) = stream.feed(character).open or (None,)
        shown = "".join(child.content for child in (block.tokens[1].children or [])) if block else ""
        assert "*" not in shown
        assert "<" not in shown


LINKS = {
    "hapi#478": "Issue 已创建：<a>https://github.com/tiann/hapi/issues/477</a>，涵盖了",
    "wuu#47": "PR：<a>https://github.com/a/wuu/pull/45</a>（主题）",
    "wuu#47, query": "见 <a>https://example.com/a?b=1</a>，谢谢",
    "openchamber#3039": "访问 <a>https://example.com/docs</a>（中文说明）了解更多",
    "openchamber#3039, stop": "<a>https://example.com</a>。",
    "pi-agent-desktop#50": "读<a>https://github.com/abcwyc/pi-agent-desktop/issues/48</a>，然后来解决一下",
    "kimi-code#2917": "<a>https://example.com/app/pull/232</a>（本地",
    "a quotation": "他说“<a>https://example.com/a</a>”很好",
    "a word behind the host": "请打开<a>https://www.example.com</a>查看",
    "a path in Chinese stays": "<a>https://zh.wikipedia.org/wiki/北京</a> 在此",
    "a Chinese host stays": "<a>https://例子.中国/路</a>。",
    "two": "<a>https://a.example/1</a>、<a>https://b.example/2</a>。",
    "punctuation of English": "see <a>https://example.com/a</a>, <a>https://example.com/b</a>.",
}


@case(ADDRESSES, Way.WINDOW, report="hapi#478, wuu#47, openchamber#3039, pi-agent-desktop#50", before="failed")
@pytest.mark.parametrize("shown", LINKS.values(), ids=list(LINKS))
def test_a_bare_address_ends_before_punctuation(show: Show, shown: str) -> None:
    assert show(shown.replace("<a>", "").replace("</a>", "")) == shown


_TABLE = "| a | b |\n|---|---|\n"
TAGGED = {
    "LM Studio#1175": (_TABLE + "| First reform. <br>Leader analogy | x |", "a\nb\nFirst reform.\nLeader analogy\nx"),
    "glow#162": (_TABLE + "| foo<br>bar<br />foo | <BR/>x |", "a\nb\nfoo\nbar\nfoo\n\nx"),
    "pi#3962": (_TABLE + "| one <br/> two | - a<br>- b |", "a\nb\none\ntwo\n- a\n- b"),
    "in a paragraph": ("one<br>two<br/>\nthree", "one\ntwo\nthree"),
    "a sentence of the tag": ("Use the <br> tag or \"<br>\" for it.", "Use the &lt;br> tag or \"&lt;br>\" for it."),
    "in code": (_TABLE + "| `<br>` | `a<sub>b</sub>` |", "a\nb\n<kbd>&lt;br></kbd>\n<kbd>a&lt;sub>b&lt;/sub></kbd>"),
    "mark-sharp#55": ("H<sub>2</sub>O, E = mc<sup>2</sup>", "H<sub>2</sub>O, E = mc<sup>2</sup>"),
    "askbot-devel#529": ("<kbd>Ctrl</kbd>+<kbd>C</kbd>", "<kbd>Ctrl</kbd>+<kbd>C</kbd>"),
    "emphasis inside": ("x<sup>**2**n</sup>", "x<b><sup>2</sup></b><sup>n</sup>"),
    "other tags": ("<b>x</b> <u>y</u> <sub a=1>w</sub>", "&lt;b>x&lt;/b> &lt;u>y&lt;/u> &lt;sub a=1>w&lt;/sub>"),
    "never closed": ("a <sub>b and <sup> </sup>c", "a &lt;sub>b and &lt;sup> &lt;/sup>c"),
    "entities stay": ("&lt;br&gt; and \\<br>", "&lt;br> and &lt;br>"),
}  # fmt: skip


@case(TAGS, Way.WINDOW, report="LM Studio#678, #1175, #1615; pi#3962, glow#162, mark-sharp#55", before="failed")
@pytest.mark.parametrize(("text", "shown"), TAGGED.values(), ids=list(TAGGED))
def test_tags_for_which_markdown_has_nothing_are_drawn(show: Show, text: str, shown: str) -> None:
    assert show(text) == shown


_BODY = "## Identity\nWrite it in Markdown. Example:\n```\nPIR Corporate\n```\n## Output\n```json\n{}\n```\n"
NESTED = {
    "filigran-ui#288": f"```markdown\n{_BODY}```",
    "DEEIX-Chat#735": "```markdown\n# Plan\n\n```text\nDONE: ...\nNOW: ...\n```\n\n## Notes\n```",
    "marked#3231": "```markdown\n# Header\n```bash\n// some code\n```\n```",
    "claude-howto#48": "```md\nText\n\n```json\n{}\n```\n\nMore\n\n```py\nx\n```\n```",
    "agentstack#1110": "~~~markdown\nFirst\n```py\nfoo=1\n```\nSecond\n~~~",
    "a longer outer fence": "````markdown\n```py\nx\n```\n````",
    "a longer inner fence": "```markdown\n````py\n```\n````\nend\n```",
    "no fence inside": "```markdown\n# Title\n\n**x**\n```",
    "a long one": "```markdown\n" + "".join(f"# Part {n}\n\n```python\nx = {n}\n```\n\n" for n in range(400)) + "```",
    "a long one of bare fences": "```markdown\n"
    + "".join(f"Example {n}:\n```\nx = {n}\n```\n" for n in range(400))
    + "```",
    "a long inner one": "```markdown\n```python\n" + "".join(f"x{n} = {n}\n" for n in range(2_000)) + "```\nend\n```",
}


@case(FENCES, Way.WINDOW, report="filigran-ui#288, DEEIX-Chat#735, marked#3231, claude-howto#48", before="failed")
@pytest.mark.parametrize("text", NESTED.values(), ids=list(NESTED))
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_code_block_of_markdown_holds_code_blocks(text: str, step: int) -> None:
    stream = MarkdownStream()
    step = max(step, len(text) // 300)
    answer = f"Here:\n\n{text}\n\nThe end."
    blocks = [block for at in range(0, len(answer), step) for block in stream.feed(answer[at : at + step]).finished]
    blocks += stream.end().finished

    assert {block.kind for block in blocks[1:-1]} == {"fence"}
    code = "".join(block.tokens[0].content for block in blocks[1:-1])
    assert code.split("\n")[:-1] == text.split("\n")[1:-1]
    assert [block.tokens[1].content for block in (blocks[0], blocks[-1])] == ["Here:", "The end."]


@case(FENCES, Way.WINDOW, report="filigran-ui#288", before="failed")
def test_the_code_block_is_one_card_while_it_streams(show: Show) -> None:
    text = NESTED["filigran-ui#288"]
    inside = [line for line in text.split("\n")[1:-1] if line]
    assert show(f"Here:\n\n{text}\n\nThe **end**.") == "\n".join(("Here:", *inside, "The <b>end</b>."))


@case(FENCES, Way.WINDOW, report="found by writing the rule", before="held")
def test_text_right_behind_a_code_block_of_markdown_is_text(show: Show) -> None:
    assert show("```markdown\n# T\n```\nand **more**\n\n```py\nx\n```") == "# T\nand <b>more</b>\nx"


@case(TAGS, Way.WINDOW, report="found by exporting a chat", before="failed")
async def test_an_export_as_a_page_follows_the_same_rules(tmp_path: Path) -> None:
    text = f"**提示：**正文\n\n{_TABLE}| x <br> y | H<sub>2</sub> |\n\n{NESTED['filigran-ui#288']}\n"
    question = gpt_node("1", None, text="?")
    kit = Kit(tmp_path)
    await kit.start()
    try:
        await kit.import_value([gpt_chat(question, gpt_node("2", "1", "assistant", text))])
        await kit.exchange.export(tmp_path / "chat.html", "html")
    finally:
        await kit.chat_list.close()

    page = await asyncio.to_thread((tmp_path / "chat.html").read_text, encoding="utf-8")
    assert "<strong>提示：</strong>正文" in page
    assert "<td>x<br" in page
    assert "H<sub>2</sub>" in page
    assert page.count("<pre>") == 1
