"""A model's chat template: text that turns a conversation into the prompt the model was trained on."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jinja2

from qwendesk.core.errors import BadRequest
from qwendesk.engine.protocol import TemplateAbilities
from qwendesk.engine.worker.template_builtin import BUILTIN_CHATML
from qwendesk.engine.worker.template_limits import Meter, TemplateLimits, TemplateTooCostly
from qwendesk.engine.worker.template_sandbox import TemplateEnvironment

__all__ = ["BUILTIN_CHATML", "ChatTemplate", "TemplateLimits", "TemplateTooCostly", "probe_abilities"]


class ChatTemplate:
    """A compiled template. It renders one conversation at a time."""

    def __init__(self, source: str, *, bos: str = "", eos: str = "", limits: TemplateLimits | None = None) -> None:
        """Raises BadRequest, with the line, when `source` is no Jinja template."""
        self._tokens = {"bos_token": bos, "eos_token": eos}
        self._limits = limits or TemplateLimits()
        self._environment = TemplateEnvironment(self._limits)
        try:
            self._template = self._environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise BadRequest("Broken chat template", f"Line {error.lineno}: {_sentence(error.message)}") from error
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise BadRequest("Broken chat template", f"It is nested too deeply or too large ({error}).") from error

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """The prompt as text.

        Raises BadRequest when the template refuses the conversation or fails, TemplateTooCostly (one of those) when
        it was stopped because it took too much memory or time.
        """
        self._environment.meter = meter = Meter(self._limits)
        values = {"messages": list(messages), "tools": tools, "documents": None, **self._tokens, **variables}
        pieces: list[str] = []
        n_chars = 0
        try:
            for piece in self._template.generate(values, add_generation_prompt=add_generation_prompt):
                n_chars += len(piece)
                if n_chars > self._limits.value_chars:
                    raise TemplateTooCostly("makes texts too long for any prompt")
                meter.tick()
                pieces.append(piece)
        except BadRequest:
            raise
        except Exception as error:  # a template is a program: it can fail in any way
            raise BadRequest("The chat template failed", _failure(error)) from error
        return "".join(pieces)


def probe_abilities(template: ChatTemplate, source: Literal["model", "file", "builtin"]) -> TemplateAbilities:
    """What `template` honours, found by rendering a short chat both ways and comparing.

    Raises BadRequest when it cannot render even a plain question.
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

    def render(turns: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, **variables: bool) -> str:
        return template.render(turns, tools=tools, add_generation_prompt=True, variables=variables)

    return TemplateAbilities(
        source=source,
        enable_thinking=_differ(lambda on: render(question, None, enable_thinking=on)),
        preserve_thinking=_differ(lambda on: render([*question, answer, *question], None, preserve_thinking=on)),
        tools=_differ(lambda on: render(question, [tool] if on else None)),
    )


def _differ(render: Callable[[bool], str]) -> bool:
    try:
        return render(True) != render(False)
    except BadRequest:
        return False


def _failure(error: Exception) -> str:
    """What went wrong and in which line of the template."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    where = f"Line {lines[-1]}: " if lines else ""
    return where + _sentence(str(error) or type(error).__name__)


def _sentence(text: str | None) -> str:
    return (text or "It cannot be read")[:2000].rstrip(". ") + "."
