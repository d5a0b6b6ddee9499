"""What a chat template on a server takes, found by rendering it with and without, as the engine worker does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from qwendesk.core.generation_options import REASONING_EFFORTS
from qwendesk.engine.protocol import TemplateAbilities

Render = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], Awaitable[Any]]
"""Returns the prompt of messages with these template variables, as text or tokens; None if it can't be rendered."""

_QUESTION: Final = ({"role": "user", "content": "Hello"},)
_CHAT: Final = (
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi", "reasoning_content": "A greeting.", "reasoning": "A greeting."},
    {"role": "user", "content": "Bye"},
)


async def probe_template(render: Render, *, tools: bool) -> TemplateAbilities | None:
    """Return what the template takes; None if the server renders nothing. `tools` is what is known otherwise."""
    plain = await render(_QUESTION, {})
    if plain is None:
        return None
    thinking = await render(_QUESTION, {"enable_thinking": True})
    direct = await render(_QUESTION, {"enable_thinking": False})
    can_think = thinking is not None and direct is not None and thinking != direct
    efforts = await _efforts(render, thinking) if can_think else {}
    kept = await render(_CHAT, {"preserve_thinking": True})
    dropped = await render(_CHAT, {"preserve_thinking": False})
    return TemplateAbilities(
        source="model",
        enable_thinking=can_think,
        preserve_thinking=kept is not None and kept != dropped,
        preserves_by_default=kept is not None and kept != dropped and await render(_CHAT, {}) == kept,
        tools=tools,
        call_dialect="json" if tools else "",
        reasoning_efforts=tuple(efforts),
        default_effort=next((effort for effort, prompt in efforts.items() if prompt == thinking), ""),
    )


async def _efforts(render: Render, default: Any) -> dict[str, Any]:
    """Return the prompts of the efforts that each give another one; empty if the template takes none.

    A template that takes an effort refuses or ignores what it doesn't know.
    """
    prompts: dict[str, Any] = {}
    for effort in REASONING_EFFORTS:
        prompt = await render(_QUESTION, {"enable_thinking": True, "reasoning_effort": effort})
        if prompt is not None and prompt not in prompts.values():
            prompts[effort] = prompt
    return prompts if len(prompts) > 1 and default is not None else {}
