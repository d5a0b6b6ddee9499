"""A chat as Markdown: what is shown, from the first message to the last."""

from datetime import UTC, datetime

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.units import show_duration
from qwendesk.services.chat.exchange.values import ExchangedChat


def markdown_of(chat: ExchangedChat, *, thoughts: bool) -> str:
    """The shown messages under a heading each; with the thoughts as quotes before their answers, if wanted.

    Pictures are named, not included; documents are quoted.
    """
    parts = [f"# {_one_line(chat.summary.title) or 'Chat'}", f"*{_day(chat.summary.created_s)}*"]
    if chat.summary.settings.system_prompt.strip():
        parts += ["## System prompt", chat.summary.settings.system_prompt.strip()]
    for node in chat.tree.path():
        parts += _message(node, thoughts=thoughts)
    return "\n\n".join(parts) + "\n"


def _message(node: ChatNode, *, thoughts: bool) -> list[str]:
    parts = [f"## {speaker(node)}"]
    if thoughts and node.message.reasoning.strip():
        lines = (thought_heading(node), "", *node.message.reasoning.strip().splitlines())
        parts.append("\n".join(f"> {line}".rstrip() for line in lines))
    parts += [f"*(Picture {number})*" for number, _ in enumerate(node.message.images, 1)]
    parts += [document.quoted().strip() for document in node.message.documents]
    if node.message.text.strip():
        parts.append(node.message.text.strip())
    if node.error:
        parts.append(f"*({_one_line(node.error)})*")
    return parts


def speaker(node: ChatNode) -> str:
    """Who says it, in a word or by the model's name."""
    if node.is_answer:
        return _one_line(node.model) or "Answer"
    return "You" if node.message.role == "user" else node.message.role.capitalize()


def thought_heading(node: ChatNode) -> str:
    return f"Thought for {show_duration(node.thought_s)}" if node.thought_s else "Thought"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(max(0.0, min(seconds, 4e9)), UTC):%Y-%m-%d %H:%M} UTC"
