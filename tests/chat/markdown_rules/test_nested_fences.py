"""A code block of Markdown ends with the list or quote that holds it, and stays code where it is indented."""

import pytest

from qwendesk.chat.view.answer.markdown_blocks import parse_blocks


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("- item\n\n  ```md\n  # T\n\n  ```py\n  x\n  ```\n  ```\n\n- two", ["item", "# T\n\n```py\nx\n```\n", "two"]),
        ("- ```md\n  ```py\n  x\n\nend", ["```py\nx\n\n", "end"]),
        ("> ```md\n> ```py\n> x\n> ```\n> ```\n> after\n\nend", ["```py\nx\n```\n", "after", "end"]),
        ("    ```markdown\n    x\n", ["```markdown\nx\n"]),
        ("text\n```markdown\n# x\n```\nafter", ["text", "# x\n", "after"]),
        ("```markdown\n```\n\nafter", ["after"]),
    ],
)
def test_a_block_of_markdown_in_other_blocks(text: str, contents: list[str]) -> None:
    tokens = [token for block in parse_blocks(text) for token in block.tokens]
    assert [token.content for token in tokens if token.content] == contents
