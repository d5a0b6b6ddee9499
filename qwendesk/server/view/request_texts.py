"""What the Server page says of requests."""

import datetime
from collections.abc import Sequence

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_rate
from qwendesk.server.requests import Phase, ServedRequest

_PROGRAMS = (
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("opencode", "opencode"),
    ("cline", "Cline"),
    ("continue", "Continue"),
    ("zed", "Zed"),
    ("litellm", "LiteLLM"),
    ("openai", "OpenAI SDK"),
    ("asyncopenai", "OpenAI SDK"),
    ("anthropic", "Anthropic SDK"),
    ("asyncanthropic", "Anthropic SDK"),
)
"""How names in requests begin, in lower case, and whose they are."""
_NOTHING = "\N{EN DASH}"
_TONES: dict[Phase, str] = {"waiting": "notice", "refused": "error", "done": "dim", "stopped": "dim"}


def program_text(request: ServedRequest) -> str:
    """Return who asks: the program, and the name of its key if that has one."""
    known = request.program.lower()
    name = next((title for start, title in _PROGRAMS if known.startswith(start)), request.program)
    name = name or tr("unknown")
    return tr("{0} ({1})", name, request.key_name) if request.key_name else name


def time_text(request: ServedRequest) -> str:
    return datetime.datetime.fromtimestamp(request.began_s).strftime("%H:%M:%S")


def prompt_text(request: ServedRequest) -> str:
    return show_count(request.prompt_tokens) if request.prompt_tokens else _NOTHING


def read_text(request: ServedRequest) -> str:
    """Return how many tokens of the prompt had to be processed."""
    return show_count(request.prompt_tokens - request.reused_tokens) if request.prompt_tokens else _NOTHING


def written_text(request: ServedRequest) -> str:
    return show_count(request.written_tokens) if request.written_tokens else _NOTHING


def speed_text(request: ServedRequest) -> str:
    return tr("{0} tok/s", show_rate(request.tok_s)) if request.tok_s else _NOTHING


def details_text(request: ServedRequest) -> str:
    """Return the tooltip of a request: its path, and what a narrow window has no room for."""
    tokens = tr("{0} of {1} read, {2} written", read_text(request), prompt_text(request), written_text(request))
    ignored = (tr("Fields that had no effect: {0}", request.ignored),) if request.ignored else ()
    return "\n".join((request.path, time_text(request), tokens, *ignored))


def phase_text(request: ServedRequest) -> str:
    match request.phase:
        case "waiting":
            return tr("waiting")
        case "reading":
            return tr("reading")
        case "writing":
            return tr("writing")
        case "done":
            return tr("done")
        case "stopped":
            return tr("stopped")
        case "refused":
            return tr("refused: {0}", request.problem) if request.problem else tr("refused")


def phase_kind(phase: Phase) -> str:
    """Return the stylesheet's kind of a state."""
    return _TONES.get(phase, "good")


def summary_text(requests: Sequence[ServedRequest]) -> str:
    """Return "1 running · 2 waiting · 98.6 % of the prompts reused"; "" without requests."""
    running = sum(each.phase in ("reading", "writing") for each in requests)
    waiting = sum(each.phase == "waiting" for each in requests)
    prompt = sum(each.prompt_tokens for each in requests)
    parts = [tr_n("{0} running", "{0} running", running)] if running else []
    parts += [tr_n("{0} waiting", "{0} waiting", waiting)] if waiting else []
    if prompt:
        share = 100 * sum(each.reused_tokens for each in requests) / prompt
        parts.append(tr("{0} % of the prompts reused", show_decimal(share, 1)))
    return " · ".join(parts)
