"""Exports a chat as a web page in one file, which loads nothing and runs no script, whatever the model wrote.

Three measures ensure this. Text goes through the same kind of Markdown parser as on screen, without raw HTML. Links
can only be http and https. The page's content security policy allows only its own style and the pictures inside it.
"""

import html
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt

from qwendesk.chat.exchange.markdown import call_heading, reasoning_heading, speaker
from qwendesk.chat.exchange.pictures import data_url, picture_bytes
from qwendesk.chat.exchange.values import ExchangedChat
from qwendesk.core.citations import Citation, citations_of, cited_in
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import ToolStep

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; }
article { margin: 1.5rem 0; overflow-wrap: break-word; }
article.you { background: rgba(128, 128, 128, .14); border-radius: 10px; padding: .5rem 1rem; }
article > header { font-size: .8rem; opacity: .7; }
details { border: 1px solid rgba(128, 128, 128, .4); border-radius: 10px; padding: .4rem .8rem; margin: .5rem 0; }
summary { cursor: pointer; opacity: .7; }
pre { background: rgba(128, 128, 128, .14); border-radius: 8px; padding: .8rem; overflow-x: auto; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid rgba(128, 128, 128, .4); padding: .3rem .6rem; text-align: left; }
img { max-width: 100%; border-radius: 8px; }
blockquote { border-left: 3px solid rgba(128, 128, 128, .4); margin-left: 0; padding-left: 1rem; }
"""


class _SafeMarkdown(MarkdownIt):
    """Markdown parser that accepts only http and https links."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return url.strip().lower().startswith(("http://", "https://"))


def export_web_page(chat: ExchangedChat) -> str:
    """Return a page of the shown messages, with folded reasoning and embedded pictures. Reads files; blocks."""
    title = html.escape(" ".join(chat.summary.title.split()) or "Chat")
    known: dict[int, Citation] = {}
    messages = []
    for node in chat.tree.path():
        known |= citations_of(node.message.steps)
        messages.append(_message(node, known))
    body = "\n".join(messages)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _message(node: ChatNode, known: Mapping[int, Citation]) -> str:
    parts = [f"<header>{html.escape(speaker(node))}</header>", *map(_step, node.message.steps)]
    if node.message.reasoning.strip():
        thought = html.escape(node.message.reasoning.strip()).replace("\n", "<br>\n")
        parts.append(f"<details><summary>{html.escape(reasoning_heading(node))}</summary>{thought}</details>")
    for image in node.message.images:
        address = data_url(picture_bytes(image))
        parts.append(f'<p><img alt="Picture" src="{address}"></p>' if address else "<p><em>(Picture)</em></p>")
    for document in node.message.documents:
        name, quoted = html.escape(document.name), html.escape(document.text)
        parts.append(f"<details><summary>{name}</summary><pre>{quoted}</pre></details>")
    text = node.message.text
    # The user's text is not meant as Markdown.
    parts.append(_markdown().render(text) if node.is_answer else _plain(text))
    if node.is_answer and (sources := cited_in(text, known)):
        places = (html.escape(f"[{each.number}] {each.place}") for each in sources)
        parts.append(f"<ul>{''.join(f'<li>{place}</li>' for place in places)}</ul>")
    if node.error:
        parts.append(f"<p><em>{html.escape(node.error)}</em></p>")
    return f'<article class="{"answer" if node.is_answer else "you"}">{"".join(parts)}</article>'


def _step(step: ToolStep) -> str:
    parts = []
    if step.reasoning.strip():
        parts.append(f"<details><summary>Thought</summary>{_plain(step.reasoning.strip())}</details>")
    if step.text.strip():
        parts.append(_markdown().render(step.text))
    for record in step.calls:
        heading, outcome = html.escape(call_heading(record)), html.escape(record.error or record.result)
        parts.append(f"<details><summary>{heading}</summary><pre>{outcome}</pre></details>")
    return "".join(parts)


def _plain(text: str) -> str:
    return "<p>" + html.escape(text).replace("\n", "<br>\n") + "</p>"


@cache
def _markdown() -> MarkdownIt:
    parser = _SafeMarkdown("commonmark", {"html": False, "breaks": True}).enable("table").enable("strikethrough")
    # Remote pictures are never loaded: they become links.
    parser.disable("image")
    return parser
