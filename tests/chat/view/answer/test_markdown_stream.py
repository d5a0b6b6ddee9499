"""Markdown is split into blocks while it streams."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwendesk.chat.view.answer.markdown_stream import MarkdownStream, complete
from tests.chat.view.answer.markdown import blocks_of_text

SAMPLE = """# Title

Some **bold** text
on two lines.

- one
- two
  - nested

1. first

   ```python
   x = 1

   y = 2
   ```
2. second

| a | b |
|---|---|
| 1 | 2 |

```c
int main(void) {

    return 0;
}
```

> quoted
> text

$$
x^2
$$

The end.
"""


def kinds(text: str, step: int) -> list[str]:
    stream = MarkdownStream()
    found = [
        block.kind for start in range(0, len(text), step) for block in stream.feed(text[start : start + step]).finished
    ]
    return found + [block.kind for block in stream.end().finished]


@pytest.mark.parametrize("step", [1, 2, 7, 64, 10_000])
def test_streamed_text_gives_the_same_blocks_as_the_whole_text(step: int) -> None:
    assert kinds(SAMPLE, step) == [
        "heading_open",
        "paragraph_open",
        "bullet_list_open",
        "ordered_list_open",
        "table_open",
        "fence",
        "blockquote_open",
        "math_block",
        "paragraph_open",
    ]


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "# h",
                "\\\\[ x \\\\]",
                "$$",
                "text",
                "- item",
                "1. one",
                "> q",
                "```",
                "| a |",
                "|---|",
                "",
                "",
                "    code",
                "**b",
            ]
        ),
        max_size=14,
    ),
    st.integers(1, 9),
)
def test_no_text_is_lost_wherever_the_stream_is_split(lines: list[str], step: int) -> None:
    text = "\n".join(lines)
    stream = MarkdownStream()
    finished = [
        block for start in range(0, len(text), step) for block in stream.feed(text[start : start + step]).finished
    ]
    finished += stream.end().finished
    words = "".join("".join(block.source for block in finished).split())
    assert words == "".join(text.split())


def test_finished_block_is_returned_once_and_the_open_one_is_shown() -> None:
    stream = MarkdownStream()
    first = stream.feed("One.\n\nTw")
    assert first.finished == ()
    first = stream.feed("o and some more")
    assert [block.source for block in first.finished] == ["One.\n\n"]
    assert [block.source for block in first.open] == ["Two and some more"]
    second = stream.feed(".")
    assert second.finished == ()
    assert [block.source for block in second.open] == ["Two and some more."]


def test_unclosed_fence_is_code_to_the_end() -> None:
    stream = MarkdownStream()
    step = stream.feed("```python\n# not a heading\n\n| no | table |\n")
    assert step.finished == ()
    assert [block.kind for block in step.open] == ["fence"]
    assert step.open[0].tokens[0].content == "# not a heading\n\n| no | table |\n"
    closed = stream.feed("```\n\nAfter the code")
    assert [block.kind for block in closed.finished] == ["fence"]


def test_long_list_is_finished_item_by_item_with_its_numbers() -> None:
    stream = MarkdownStream()
    text = "".join(f"1. item number {number} of a rather long list\n" for number in range(1, 200))
    blocks = [block for start in range(0, len(text), 40) for block in stream.feed(text[start : start + 40]).finished]
    blocks += stream.end().finished
    assert len(blocks) > 3
    starts = [int(block.tokens[0].attrGet("start") or 1) for block in blocks]
    counts = [sum(token.type == "list_item_open" for token in block.tokens) for block in blocks]
    assert starts == [1 + sum(counts[:index]) for index in range(len(counts))]
    assert sum(counts) == 199


@pytest.mark.parametrize(
    ("half", "shown"),
    [
        ("some **bold", "some **bold**"),
        ("some `code", "some `code`"),
        ("all **done** here", "all **done** here"),
        ("| a | b", "| a | b |\n|---|---|"),
        ("| a | b |\n|--", "| a | b |\n|---|---|"),
        ("see [the site](https://exam", "see the site"),
        ("text\n``", "text"),
        ("```pyth", ""),
        ("2 * 3", "2 * 3"),
    ],
)
def test_unfinished_block_is_shown_as_if_finished(half: str, shown: str) -> None:
    assert complete(half) == shown


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("\\[ x^2 \\]", ["x^2"]),
        ("so\n\n\\[\na + b\n= c\n\\]\n\nafter", ["a + b\n= c"]),
        ("$$\nx\n$$", ["\nx\n"]),
        ("- item\n\n  \\[ y \\]\n", ["y"]),
        ("\\[ never closed\n\nafter", []),
    ],
)
def test_displayed_formulas_are_blocks(text: str, formulas: list[str]) -> None:
    tokens = [token for block in blocks_of_text(text) for token in block.tokens]
    assert [token.content for token in tokens if token.type == "math_block"] == formulas


def test_inline_formulas_are_told_from_prices() -> None:
    (block,) = blocks_of_text("The \\(a_1\\) and $b_2$ and \\[c\\] cost $5 or $10, not \\(.")
    children = block.tokens[1].children or []
    assert [child.content for child in children if child.type.startswith("math")] == ["a_1", "b_2", "c"]
    assert "".join(child.content for child in children if child.type == "text").endswith("cost $5 or $10, not (.")


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("US$3.50 for 2$ worth", []),
        ("$5 and 10$ more", []),
        ("from $5 to $10 or 3$ each", []),
        ("$20 USD$ and", []),
        ("HK$100/2$", []),
        ("**$5** and\n10$", []),
        ("€5 and $x$, $2 x$, $2 \\times 3$, $1$, $n$ of 有$2$个", ["x", "2 x", "2 \\times 3", "1", "n", "2"]),
    ],
)
def test_prices_on_both_sides_of_a_number_are_no_formulas(text: str, formulas: list[str]) -> None:
    (block,) = blocks_of_text(text)
    children = block.tokens[1].children or []
    assert [child.content for child in children if child.type.startswith("math")] == formulas
