"""Exports the shown messages of a chat as Markdown."""

from collections.abc import Mapping
from datetime import UTC, datetime

from qwendesk.chat.exchange.values import ExchangedChat
from qwendesk.core.citations import Citation, citations_of, cited_in
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import CallRecord, DocumentPart, ToolStep
from qwendesk.core.units import show_duration


def export_markdown(chat: ExchangedChat, *, with_reasoning: bool) -> str:
    """Return the shown messages under one heading each, with the reasoning as block quotes if `with_reasoning` is set.

    Pictures are only mentioned; documents are quoted.
    """
    parts = [f"# {_one_line(chat.summary.title) or 'Chat'}", f"*{_day(chat.summary.created_s)}*"]
    if chat.summary.settings.system_prompt.strip():
        parts += ["## System prompt", chat.summary.settings.system_prompt.strip()]
    known: dict[int, Citation] = {}
    for node in chat.tree.path():
        known |= citations_of(node.message.steps)
        parts += _message(node, known, with_reasoning=with_reasoning)
    return "\n\n".join(parts) + "\n"


def _message(node: ChatNode, known: Mapping[int, Citation], *, with_reasoning: bool) -> list[str]:
    parts = [f"## {speaker(node)}"]
    for step in node.message.steps:
        parts += _step(step, with_reasoning=with_reasoning)
    if with_reasoning and node.message.reasoning.strip():
        lines = (reasoning_heading(node), "", *node.message.reasoning.strip().splitlines())
        parts.append("\n".join(f"> {line}".rstrip() for line in lines))
    parts += [f"*(Picture {number})*" for number, _ in enumerate(node.message.images, 1)]
    parts += [document.quoted().strip() for document in node.message.documents]
    if node.message.text.strip():
        parts.append(node.message.text.strip())
    if node.is_answer and (sources := cited_in(node.message.text, known)):
        # The number is escaped so that no link is made of it.
        parts.append("\n".join(f"- \\[{each.number}] {each.place}" for each in sources))
    if node.error:
        parts.append(f"*({_one_line(node.error)})*")
    return parts


def _step(step: ToolStep, *, with_reasoning: bool) -> list[str]:
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


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(max(0.0, min(seconds, 4e9)), UTC):%Y-%m-%d %H:%M} UTC"
