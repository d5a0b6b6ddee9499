"""The trial's own questions and prompts, and how an engine is asked them: always the most likely token."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.stats import AnswerStats
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport, Measure, PromptProgress
from qwendesk.engines.pc_trial.report import SpeedAtDepth, TrialAnswer
from qwendesk.engines.pc_trial.steps import StepFailed, or_failed
from qwendesk.engines.self_test import draw_red_circle

# Tokens that are generated to measure a speed.
_GENERATED = 32
_LONGEST_ANSWER = 160
_SPARE_TOKENS = 64
_PARAGRAPH = "The video memory holds the weights of all layers, and the bandwidth decides how fast the model writes. "
# Paragraphs whose tokens are counted to know how many make a prompt of a depth.
_CALIBRATION = 32


class TrialQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with words that the demo model was trained to say."""

    text: str
    expected: tuple[str, ...]
    thinking: bool = False
    has_picture: bool = False

    @property
    def name(self) -> str:
        return f"{self.text} (thinking)" if self.thinking else self.text


DEMO_QUESTIONS = (
    TrialQuestion(text="What is 2 + 3?", expected=("2 + 3 = 5",)),
    TrialQuestion(text="What is 2 + 3?", expected=("The sum is 5.", "2 + 3 = 5"), thinking=True),
    TrialQuestion(text="What is QwenDesk?", expected=("desktop app",)),
    TrialQuestion(text="What is a quant?", expected=("fewer bits",)),
)
PICTURE_QUESTION = TrialQuestion(text="What is in this picture?", expected=("red", "circle"), has_picture=True)


async def ask_question(client: EngineClient, question: TrialQuestion, folder: Path) -> TrialAnswer:
    """Return the answer. Raises StepFailed if the engine gives none. The picture is drawn in `folder`."""
    message = text_message("user", question.text)
    if question.has_picture:
        message = Message("user", (await asyncio.to_thread(_picture, folder), TextPart(question.text)))
    options = _greedy(enable_thinking=question.thinking, max_tokens=_LONGEST_ANSWER)
    started_s = time.monotonic()
    reasoning, text, _ = await _ask(client, [message], options)
    answer = f"{reasoning}\n\n{text}" if reasoning else text
    return TrialAnswer(
        question=question.name,
        has_picture=question.has_picture,
        answer=answer,
        is_expected=all(words.lower() in answer.lower() for words in question.expected),
        is_as_on_cpu=None,
        seconds=round(time.monotonic() - started_s, 3),
    )


async def warm_up(client: EngineClient) -> None:
    """Generate one token. A GPU engine compiles its shaders now, which can take minutes the first time."""
    await _ask(client, [text_message("user", "Hello")], _greedy(enable_thinking=False, max_tokens=1))


async def measure_speed(client: EngineClient, report: LoadReport, depth: int) -> SpeedAtDepth:
    """Measure a prompt of about `depth` tokens and some generated tokens. Raises StepFailed if it can't be done."""
    if report.n_ctx < depth + _GENERATED + _SPARE_TOKENS:
        raise StepFailed(tr("The context of {0} tokens is too short.", report.n_ctx))
    ends = tuple(f"{token}=-inf" for token in report.end_tokens)
    options = _greedy(enable_thinking=False, max_tokens=_GENERATED, logit_bias=ends, cache_prompt=False)
    sample = text_message("user", _PARAGRAPH * _CALIBRATION)
    counted = or_failed(await client.ask(Measure(messages=(sample,), options=options)))
    n_paragraphs = max(1, depth * _CALIBRATION // max(counted.prompt_tokens, 1))
    _, _, stats = await _ask(client, [text_message("user", _PARAGRAPH * n_paragraphs)], options)
    generated = stats.reasoning_tokens + stats.answer_tokens
    return SpeedAtDepth(
        depth=depth,
        prompt_tokens=stats.prompt_tokens,
        prefill_tok_s=round(stats.reread_tokens / stats.prefill_s, 1) if stats.prefill_s > 0 else None,
        generated_tokens=generated,
        decode_tok_s=round(stats.decode_tok_s, 2) if stats.decode_tok_s > 0 else None,
    )


async def _ask(
    client: EngineClient, messages: Sequence[Message], options: GenerationOptions
) -> tuple[str, str, AnswerStats]:
    """Return reasoning, answer and statistics. Raises StepFailed if the engine fails or exits."""
    texts = {"reasoning": "", "answer": ""}
    async for item in client.generate(Generate(messages=tuple(messages), options=options)):
        if isinstance(item, Delta):
            texts[item.kind] += item.text
        elif isinstance(item, Finished):
            return texts["reasoning"], texts["answer"], item.stats
        elif not isinstance(item, PromptProgress):
            or_failed(item)
    raise StepFailed(tr("The answer didn't end."))


def _greedy(
    *, enable_thinking: bool, max_tokens: int, logit_bias: tuple[str, ...] = (), cache_prompt: bool = True
) -> GenerationOptions:
    return GenerationOptions(
        temperature=0.0,
        presence_penalty=0.0,
        enable_thinking=enable_thinking,
        max_tokens=max_tokens,
        logit_bias=logit_bias,
        cache_prompt=cache_prompt,
    )


def _picture(folder: Path) -> ImagePart:
    path = folder / "red-circle.png"
    if not path.is_file():
        draw_red_circle(path)
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
