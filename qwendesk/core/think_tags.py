"""Splits an answer in which the reasoning was left between <think> and </think>, as many programs keep it."""

import re

import msgspec

from qwendesk.core.messages import Message, TextPart

_OPEN, _CLOSE = "<think>", "</think>"
_OPEN_HERE = re.compile(r"\s*<think>")
_LINE_OF_OPEN = re.compile(r"^[ \t]*<think>", re.MULTILINE)
_LINE_OF_CLOSE = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_FENCE = "```"


class SplitAnswer(msgspec.Struct, frozen=True):
    reasoning: str
    text: str
    has_ended_thinking: bool = False
    """True if a </think> was found. If not, all of it is text, or all of it is reasoning that has not ended."""


def split_answer(answer: str) -> SplitAnswer:
    """Return the reasoning and the text of an answer.

    A tag counts at the beginning of the answer or of a line, and not in a block of code: an answer may also be about
    the tags. Where only </think> is left, on a line of its own, all text before it is reasoning, because chat templates
    open it. Text between several thoughts is kept.
    """
    if _CLOSE not in answer and not answer.lstrip().startswith(_OPEN):
        return SplitAnswer("", answer)
    if _begins_open(answer):
        answer = _OPEN + answer
    thoughts: list[str] = []
    texts: list[str] = []
    end = 0
    while (begin := _next_opening(answer, end)) >= 0:
        close = answer.find(_CLOSE, begin)
        if close < 0:
            if not answer[end:begin].strip() and not any(texts):
                return SplitAnswer("\n\n".join([*thoughts, answer[begin + len(_OPEN) :].strip()]), "")
            break
        texts.append(answer[end:begin].strip())
        thoughts.append(answer[begin + len(_OPEN) : close].strip())
        end = close + len(_CLOSE)
    if not thoughts:
        return SplitAnswer("", answer)
    texts.append(answer[end:].lstrip())
    return SplitAnswer("\n\n".join(filter(None, thoughts)), "\n\n".join(filter(None, texts)), has_ended_thinking=True)


def without_think_tags(message: Message) -> Message:
    """Return an answer with the reasoning in its text as its reasoning; any other message as it is."""
    split = split_answer(message.text) if message.role == "assistant" else SplitAnswer("", message.text)
    if split.text == message.text:
        return message
    others = (part for part in message.parts if not isinstance(part, TextPart))
    parts = (*others, *((TextPart(split.text),) if split.text else ()))
    return msgspec.structs.replace(message, parts=parts, reasoning=message.reasoning or split.reasoning)


def _begins_open(answer: str) -> bool:
    """Return whether the answer begins in a reasoning whose opening tag is missing."""
    found = _LINE_OF_CLOSE.search(answer)
    if found is None or answer.count(_FENCE, 0, found.start()) % 2:
        return False
    return _next_opening(answer[: found.start()], 0) < 0


def _next_opening(answer: str, start: int) -> int:
    """Return where the next reasoning begins at or after `start`, the end of the last one; -1 if there is none."""
    found = _OPEN_HERE.match(answer, start) or _LINE_OF_OPEN.search(answer, start)
    n_fences, counted = 0, start
    while found is not None:
        n_fences += answer.count(_FENCE, counted, found.start())
        if n_fences % 2 == 0:
            return found.end() - len(_OPEN)
        counted = found.start()
        found = _LINE_OF_OPEN.search(answer, found.end())
    return -1
