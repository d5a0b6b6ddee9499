"""Made-up programs and requests for pictures of the Server page."""

from collections.abc import Sequence

from qwendesk.server.requests import Phase, ServedRequest
from qwendesk.server.setups.service import SetupState

_BEGAN_S = 1_795_000_000.0


def made_up_states(states: Sequence[SetupState]) -> tuple[SetupState, ...]:
    """Return the programs in every state."""
    program = {each.program.id: each.program for each in states}
    return (
        SetupState(program["claude"], "works", "ready"),
        SetupState(program["codex"], "ready"),
        SetupState(program["opencode"], "trying"),
        SetupState(program["cline"], "ready"),
        SetupState(program["continue"], "failed", "connect ECONNREFUSED"),
        SetupState(program["zed"]),
    )


def made_up_requests() -> tuple[ServedRequest, ...]:
    def request(
        number: int, program: str, path: str, phase: Phase, prompt: int = 0, reused: int = 0, written: int = 0,
        tok_s: float = 0.0, problem: str = "",
    ) -> ServedRequest:  # fmt: skip
        return ServedRequest(
            number, program, "", path, _BEGAN_S + 20 * number, phase, prompt, reused, 0, written, _BEGAN_S, tok_s,
            problem,
        )  # fmt: skip

    return (
        request(6, "opencode", "/v1/chat/completions", "waiting"),
        request(5, "claude-cli", "/v1/messages", "writing", 41_208, 40_896, 212, 109.0),
        request(4, "claude-cli", "/v1/messages", "done", 40_871, 40_583, 431, 110.0),
        request(3, "codex_exec", "/v1/responses", "stopped", 9_112, 8_020, 64, 112.0),
        request(2, "curl", "/v1/chat/completions", "refused", problem="prompt is too long: 140,112 tokens"),
    )
