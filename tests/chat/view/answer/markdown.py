"""The blocks of a Markdown text, for tests."""

from qwendesk.chat.view.answer.markdown_stream import MarkdownBlock, MarkdownStream, slices


def blocks_of_text(text: str) -> tuple[MarkdownBlock, ...]:
    stream = MarkdownStream()
    finished = [block for part in slices(text) for block in stream.take(part)]
    return (*finished, *stream.end().finished)
