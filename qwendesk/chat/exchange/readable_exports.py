"""Exports a chat to be read: as Markdown, or as a web page in one file, which loads nothing and runs no script.

Three measures ensure this. Text goes through the same kind of Markdown parser as on screen, without raw HTML. Links
can only be http and https. The page's content security policy allows only its own style and the pictures inside it.
"""

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from markdown_it import MarkdownIt

from qwendesk.chat.exchange.pictures import data_url, picture_bytes
from qwendesk.chat.exchange.values import ExchangedChat
from qwendesk.chat.markdown_rules.emphasis import emphasis_plugin
from qwendesk.chat.markdown_rules.nested_fences import nested_fences_plugin
from qwendesk.chat.markdown_rules.tags import tags_plugin
from qwendesk.core.citations import Citation, citations_of, cited_in
from qwendesk.core.clips import pictures_and_clips
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import CallRecord, DocumentPart, ImagePart, ToolStep
from qwendesk.core.units import show_duration


def export_markdown(chat: ExchangedChat, *, with_reasoning: bool) -> str:
    """Return the shown messages under one heading each, with the reasoning as block quotes if `with_reasoning` is set.

    Pictures and clips are only mentioned; documents are quoted.
    """
    parts = [f"# {_one_line(chat.summary.title) or 'Chat'}", f"*{_day(chat.summary.created_s)}*"]
    if chat.summary.settings.system_prompt.strip():
        parts += ["## System prompt", chat.summary.settings.system_prompt.strip()]
    known: dict[int, Citation] = {}
    for node in chat.tree.path():
        known |= citations_of(node.message.steps)
        parts += _markdown_message(node, known, with_reasoning=with_reasoning)
    return "\n\n".join(parts) + "\n"


def _markdown_message(node: ChatNode, known: Mapping[int, Citation], *, with_reasoning: bool) -> list[str]:
    parts = [f"## {speaker(node)}"]
    for step in node.message.steps:
        parts += _markdown_step(step, with_reasoning=with_reasoning)
    if with_reasoning and node.message.reasoning.strip():
        lines = (reasoning_heading(node), "", *node.message.reasoning.strip().splitlines())
        parts.append("\n".join(f"> {line}".rstrip() for line in lines))
    attached = pictures_and_clips(node.message.images)
    parts += [f"*({_clip_line(each) or f'Picture {number}'})*" for number, each in enumerate(attached, 1)]
    parts += [document.quoted().strip() for document in node.message.documents]
    if node.message.text.strip():
        parts.append(node.message.text.strip())
    if node.is_answer and (sources := cited_in(node.message.text, known)):
        # The number is escaped so that no link is made of it.
        parts.append("\n".join(f"- \\[{each.number}] {each.place}" for each in sources))
    if node.error:
        parts.append(f"*({_one_line(node.error)})*")
    return parts


def _markdown_step(step: ToolStep, *, with_reasoning: bool) -> list[str]:
    parts = []
    if with_reasoning and step.reasoning.strip():
        parts.append("\n".join(f"> {line}".rstrip() for line in ("Thought", "", *step.reasoning.strip().splitlines())))
    if step.text.strip():
        parts.append(step.text.strip())
    for record in step.calls:
        outcome = DocumentPart(call_heading(record), record.error or record.result)
        parts.append(outcome.quoted().strip())
    return parts


def call_heading(record: CallRecord) -> str:
    """Return a tool call on one line."""
    return f"Tool {record.call.name} {_one_line(record.call.arguments_json)}"


def speaker(node: ChatNode) -> str:
    """Return who wrote a message: the name of the model, or a word such as "You"."""
    if node.is_answer:
        return _one_line(node.model) or "Answer"
    return "You" if node.message.role == "user" else node.message.role.capitalize()


def reasoning_heading(node: ChatNode) -> str:
    return f"Thought for {show_duration(node.thought_s)}" if node.thought_s else "Thought"


def _clip_line(images: Sequence[ImagePart]) -> str:
    """Return the name and length of the clip that these frames are from; "" for a picture."""
    frame = images[0].frame
    if frame is None:
        return ""
    n_frames = "1 frame" if len(images) == 1 else f"{len(images)} frames"
    return f"{_one_line(frame.clip)}, {show_duration(frame.clip_s)}, {n_frames}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(max(0.0, min(seconds, 4e9)), UTC):%Y-%m-%d %H:%M} UTC"


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
    """Return a page of the shown messages, with folded reasoning and embedded pictures, but no frames of clips.

    Reads files; blocks.
    """
    title = html.escape(" ".join(chat.summary.title.split()) or "Chat")
    known: dict[int, Citation] = {}
    messages = []
    for node in chat.tree.path():
        known |= citations_of(node.message.steps)
        messages.append(_html_message(node, known))
    body = "\n".join(messages)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def _html_message(node: ChatNode, known: Mapping[int, Citation]) -> str:
    parts = [f"<header>{html.escape(speaker(node))}</header>", *map(_html_step, node.message.steps)]
    if node.message.reasoning.strip():
        thought = html.escape(node.message.reasoning.strip()).replace("\n", "<br>\n")
        parts.append(f"<details><summary>{html.escape(reasoning_heading(node))}</summary>{thought}</details>")
    for attached in pictures_and_clips(node.message.images):
        line = _clip_line(attached)
        parts.append(f"<p><em>({html.escape(line)})</em></p>" if line else _html_picture(attached[0]))
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


def _html_picture(image: ImagePart) -> str:
    address = data_url(picture_bytes(image))
    return f'<p><img alt="Picture" src="{address}"></p>' if address else "<p><em>(Picture)</em></p>"


def _html_step(step: ToolStep) -> str:
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
    return parser.use(emphasis_plugin).use(tags_plugin).use(nested_fences_plugin)
