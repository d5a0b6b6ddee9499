"""The Server page: off, on with programs and requests, with other PCs let in, and with its port taken."""

import socket

from qwendesk.server.requests import ServedRequest
from qwendesk.server.setups.service import SetupState
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle, until

_PORT = 28_765
_BEGAN_S = 1_795_000_000.0


async def this_pc_serves(room: Room) -> None:
    services = room.parts.services
    services.settings.change({"server_port": _PORT})
    services.setups._environment = {"PATH": ""}
    await room.load()
    room.window.show_page("server")
    await room.shoot("server-off")
    with socket.socket() as other:
        other.bind(("127.0.0.1", _PORT))
        other.listen()
        room.click("serve.on")
        await until(lambda: bool(services.server_switch.observed.value.problem))
        await room.shoot("server-port-taken")
    room.click("serve.on")
    await services.server_switch.follow_settings()
    await services.server_switch.set_on(on=True)
    target = services.server_switch.target()
    if target is None:
        raise RuntimeError("the server is off")
    await services.setups.write("codex", target)
    await services.setups.refresh(target)
    states = {each.program.id: each.program for each in services.setups.observed.value}
    services.setups.observed.set(
        (
            SetupState(states["claude"], "works", "ready"),
            SetupState(states["codex"], "set_up"),
            SetupState(states["opencode"], "outdated"),
            SetupState(states["cline"], "ready"),
            SetupState(states["continue"], "failed", "connect ECONNREFUSED"),
            SetupState(states["zed"]),
        )
    )
    services.server.requests.observed.set(_requests())
    await settle()
    await room.shoot("server-on")
    await room.shoot("server-setup", lambda: room.click("serve.program.claude.setup"))
    await services.server_switch.let_network_in(allowed=True)
    await settle()
    await room.shoot("server-network")
    await services.server_switch.set_on(on=False)
    services.server.requests.observed.set(())


def _requests() -> tuple[ServedRequest, ...]:
    def request(
        number: int, program: str, path: str, phase: str, prompt: int = 0, reused: int = 0, written: int = 0,
        tok_s: float = 0.0, problem: str = "",
    ) -> ServedRequest:  # fmt: skip
        return ServedRequest(
            number, program, "", path, _BEGAN_S + 20 * number, phase, prompt, reused, 0, written, _BEGAN_S, tok_s,
            problem,
        )  # type: ignore[arg-type]  # fmt: skip

    return (
        request(6, "opencode", "/v1/chat/completions", "waiting"),
        request(5, "claude-cli", "/v1/messages", "writing", 41_208, 40_896, 212, 109.0),
        request(4, "claude-cli", "/v1/messages", "done", 40_871, 40_583, 431, 110.0),
        request(3, "codex_exec", "/v1/responses", "stopped", 9_112, 8_020, 64, 112.0),
        request(2, "curl", "/v1/chat/completions", "refused", problem="prompt is too long: 140,112 tokens"),
    )
