"""Which programs are there, and whether they work with the server."""

import asyncio
from pathlib import Path

import pytest

from qwendesk.core.observed import Observed
from qwendesk.server.requests import ServedRequest
from qwendesk.server.setups.programs import Target
from qwendesk.server.setups.service import SetupService, SetupState
from tests.server.setups.programs import until_there, write_program

pytestmark = pytest.mark.asyncio
TARGET = Target("http://127.0.0.1:8765", "qd-0123456789abcdef", 65_536)
Requests = Observed[tuple[ServedRequest, ...]]


def state(service: SetupService, program_id: str) -> SetupState:
    return next(each for each in service.observed.value if each.program.id == program_id)


async def test_a_program_is_found_by_its_command_or_by_its_settings(tmp_path: Path) -> None:
    environment = write_program(tmp_path / "my programs", "claude", "print('ready')")
    (tmp_path / ".continue").mkdir()
    service = SetupService(Requests(()), tmp_path, environment)
    await service.refresh()
    assert [state(service, each).phase for each in ("claude", "continue", "codex")] == ["ready", "ready", "not_found"]


async def test_a_trial_works_only_if_the_server_was_asked(tmp_path: Path) -> None:
    environment = write_program(tmp_path / "bin", "claude", "import sys; print('ready', sys.argv[-1])")
    requests = Requests(())
    service = SetupService(requests, tmp_path, environment)

    await service.try_program("claude", TARGET)
    assert state(service, "claude").phase == "failed"

    trial = asyncio.ensure_future(service.try_program("claude", TARGET))
    await asyncio.sleep(0)
    requests.set((ServedRequest(7, "claude-cli", "", "/v1/messages", 0.0, phase="done"),))
    await trial
    assert state(service, "claude").phase == "works"
    assert state(service, "claude").said.startswith("ready Reply with")
    await service.refresh()
    assert state(service, "claude").phase == "works"


async def test_the_error_of_a_program_without_an_answer_is_kept(tmp_path: Path) -> None:
    environment = write_program(
        tmp_path / "bin", "codex", "import sys; print('no such model', file=sys.stderr); sys.exit(3)"
    )
    service = SetupService(Requests(()), tmp_path, environment)
    await service.try_program("codex", TARGET)
    assert (state(service, "codex").phase, state(service, "codex").said) == ("failed", "no such model")


async def test_a_trial_that_is_stopped_ends(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"import pathlib, threading; pathlib.Path({str(started)!r}).touch(); threading.Event().wait()"
    environment = write_program(tmp_path / "bin", "codex", script)
    service = SetupService(Requests(()), tmp_path, environment)
    trial = asyncio.ensure_future(service.try_program("codex", TARGET))
    await until_there(started)

    service.close()

    await trial
    assert state(service, "codex").phase == "failed"


async def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    service = SetupService(Requests(()), tmp_path, {"PATH": str(tmp_path)})
    await service.try_program("codex", TARGET)
    assert "npm install -g @openai/codex" in state(service, "codex").said
