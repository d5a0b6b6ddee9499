"""Emphasis in Chinese, which has no blanks around words, and in other languages as before."""

import pytest

from qwendesk.chat.view.answer.markdown_blocks import parse_blocks


def marked(text: str) -> str:
    """Return the inline content with tags: "<b>" for strong, "<i>" for emphasis, "<s>" for struck text."""
    tags = {"strong": "b", "em": "i", "s": "s"}
    shown = ""
    for token in parse_blocks(text)[0].tokens[1].children or []:
        kind, _, end = token.type.rpartition("_")
        shown += token.content or (f"<{'/' if end == 'close' else ''}{tags[kind]}>" if kind in tags else "")
    return shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("这是**“很好”**的", "这是<b>“很好”</b>的"),
        ("**重要：**请先保存", "<b>重要：</b>请先保存"),
        ("提高了**50%**的速度", "提高了<b>50%</b>的速度"),
        ("**显存（VRAM）**和**内存（RAM）**都要", "<b>显存（VRAM）</b>和<b>内存（RAM）</b>都要"),
        ("**一**，**二**。", "<b>一</b>，<b>二</b>。"),
        ("这*很（非常）*好", "这<i>很（非常）</i>好"),
        ("删除~~（旧）~~的", "删除<s>（旧）</s>的"),
        ("これは**「例」**です", "これは<b>「例」</b>です"),
        ("** 空格**不算", "** 空格**不算"),
        ("`**“a”**的`", "**“a”**的"),
    ],
)
def test_emphasis_begins_and_ends_beside_chinese(text: str, shown: str) -> None:
    assert marked(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('say **"hello"**now', 'say **"hello"**now'),
        ("2 * 3 * 4 and 2*3*4", "2 * 3 * 4 and 2<i>3</i>4"),
        ("**a** b, *c*d", "<b>a</b> b, <i>c</i>d"),
        ("snake_case_中文_name", "snake_case_中文_name"),
    ],
)
def test_other_texts_follow_commonmark(text: str, shown: str) -> None:
    assert marked(text) == shown
