"""A model's chat template: a Jinja program that turns a conversation into a prompt of the form the model expects."""

import contextlib
import copy
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jinja2

from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import REASONING_EFFORTS
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import TemplateAbilities
from qwendesk.engine.worker.template_builtin import BUILTIN_CHATML
from qwendesk.engine.worker.template_sandbox import (
    TEXT_TOO_LONG,
    Meter,
    TemplateEnvironment,
    TemplateSandboxLimits,
    TemplateTooCostly,
)

__all__ = ["BUILTIN_CHATML", "ChatTemplate", "TemplateSandboxLimits", "TemplateTooCostly", "probe_abilities"]


# The values in the order in which they are tried: Unsloth's templates take "high" for Qwen's own "xhigh".
_EFFORTS = sorted(REASONING_EFFORTS, key="high".__eq__)


class ChatTemplate:
    """A compiled template. It renders one conversation at a time."""

    def __init__(
        self, source: str, *, bos: str = "", eos: str = "", limits: TemplateSandboxLimits | None = None
    ) -> None:
        """Compile `source`. Raise BadRequest, with the line, if it is not a valid Jinja template."""
        self._on_start = self._on_end = _do_nothing
        self._tokens = {"bos_token": bos, "eos_token": eos}
        self._limits = limits or TemplateSandboxLimits()
        self._environment = TemplateEnvironment(self._limits)
        try:
            self._template = self._environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise BadRequest(
                mark("Broken chat template"), mark("Line {0}: {1}"), error.lineno, _sentence(error.message)
            ) from error
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise BadRequest(
                mark("Broken chat template"), mark("It is nested too deeply or too large ({0})."), error
            ) from error

    def announced(self, on_start: Callable[[], None], on_end: Callable[[], None]) -> "ChatTemplate":
        """Return a copy that calls `on_start` before each rendering, and `on_end` after it, even if it failed.

        The client limits the time between the two calls. Other work, such as tokenizing a long text, comes later.
        """
        twin = copy.copy(self)
        twin._on_start, twin._on_end = on_start, on_end
        return twin

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """Return the prompt as text.

        Raise BadRequest if the template fails or refuses the conversation, and its subclass TemplateTooCostly if the
        template was stopped because it took too much memory or time.
        """
        values = {"messages": list(messages), "tools": tools, "documents": None, **self._tokens, **variables}
        values["add_generation_prompt"] = add_generation_prompt
        self._on_start()
        try:
            return self._run(values)
        finally:
            self._on_end()

    def _run(self, values: Mapping[str, Any]) -> str:
        self._environment.meter = meter = Meter(self._limits)
        pieces: list[str] = []
        n_chars = 0
        try:
            for piece in self._template.generate(values):
                n_chars += len(piece)
                if n_chars > self._limits.value_chars:
                    raise TemplateTooCostly(TEXT_TOO_LONG)
                meter.tick()
                pieces.append(piece)
        except BadRequest:
            raise
        except Exception as error:  # a template is a program, so it can raise any error
            raise _failure(error) from error
        return "".join(pieces)


def _do_nothing() -> None:
    pass


def probe_abilities(template: ChatTemplate, source: Literal["model", "file", "builtin"]) -> TemplateAbilities:
    """Find out which features `template` supports, by rendering a short chat with and without each of them.

    Raise BadRequest if the template cannot render a plain question.
    """
    question = [{"role": "user", "content": "Question"}]
    template.render(question, tools=None, add_generation_prompt=True, variables={})
    answer = {"role": "assistant", "content": "Answer", "reasoning_content": "Thought"}
    tool = {
        "type": "function",
        "function": {
            "name": "probe",
            "description": "A probe.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    }

    def render(
        turns: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None, **variables: bool | str
    ) -> str:
        return template.render(turns, tools=tools, add_generation_prompt=True, variables=variables)

    earlier = [*question, answer, *question]
    preserves = _differ(lambda on: render(earlier, preserve_thinking=on))
    efforts, default_effort = _efforts(lambda **variables: render(question, enable_thinking=True, **variables))

    def render_call(arguments: object) -> str:
        call = {"id": "call00001", "type": "function", "function": {"name": "probe", "arguments": arguments}}
        return render([*question, {**answer, "tool_calls": [call]}], [tool])

    dialect = _call_dialect(render_call)
    return TemplateAbilities(
        source=source,
        enable_thinking=_differ(lambda on: render(question, enable_thinking=on)),
        preserve_thinking=preserves,
        preserves_by_default=preserves
        and not _differ(lambda told: render(earlier, preserve_thinking=True) if told else render(earlier)),
        tools=_differ(lambda on: render(question, [tool] if on else None)),
        call_dialect=dialect,
        needs_parsed_calls=bool(dialect) and _fails(lambda: render_call('{"word": "sonde"}')),
        reasoning_efforts=efforts,
        default_effort=default_effort,
        has_video=_has_video(lambda parts: render([{"role": "user", "content": parts}])),
    )


def _has_video(render: Callable[[Sequence[Mapping[str, str]]], str]) -> bool:
    """Return whether the template has a place for a clip beside a text."""
    try:
        return "<|video_pad|>" in render([{"type": "video"}, {"type": "text", "text": "Question"}])
    except BadRequest:
        return False


def _fails(render: Callable[[], str]) -> bool:
    try:
        render()
    except BadRequest:
        return True
    return False


def _call_dialect(render: Callable[[object], str]) -> Literal["", "xml", "json"]:
    """Return how a call is written: `render` shows a chat in which one was made with these arguments."""
    try:
        _, _, written = render({"word": "sonde"}).rpartition("<tool_call>")  # an example may stand before it
    except BadRequest:
        return ""
    if re.match(r"\s*<function=probe>\s*<parameter=word>\s*sonde\s*</parameter>", written):
        return "xml"
    return "json" if re.match(r'\s*\{"name":\s*"probe",\s*"arguments":\s*\{', written) else ""


def _efforts(render: Callable[..., str]) -> tuple[tuple[str, ...], str]:
    """Return the values of `reasoning_effort` that each give another prompt, and which of them is the default.

    A template may raise an error for a value that it does not know, or take two values for the same.
    """
    efforts: dict[str, str] = {}
    for value in _EFFORTS:
        with contextlib.suppress(BadRequest):
            efforts.setdefault(render(reasoning_effort=value), value)
    if len(efforts) < 2:
        return (), ""
    default = ""
    with contextlib.suppress(BadRequest):
        default = efforts.get(render(), "")
    return tuple(value for value in REASONING_EFFORTS if value in efforts.values()), default


def _differ(render: Callable[[bool], str]) -> bool:
    try:
        return render(True) != render(False)
    except BadRequest:
        return False


def _failure(error: Exception) -> BadRequest:
    """Return an error that says what went wrong, and in which line of the template if that is known."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    title, text = mark("The chat template failed"), _sentence(str(error) or type(error).__name__)
    return BadRequest(title, mark("Line {0}: {1}"), lines[-1], text) if lines else BadRequest(title, "{0}", text)


def _sentence(text: str | None) -> str:
    return (text or "It cannot be read")[:2000].rstrip(". ") + "."
