"""`qwendesk doctor`: what is installed, what the engine sees, and whether the demo model answers as it should."""

import asyncio

import msgspec

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.services.engine.engines import chosen_here
from qwendesk.services.engine.service import EngineService
from qwendesk.services.engine.testing import Diagnosis, examine, report_of

EXIT_PASSED, EXIT_CANNOT_LOAD, EXIT_ENGINE_FAILED = 0, 3, 4


async def doctor(terminal: Terminal, interrupts: Interrupts, *, as_json: bool) -> int:
    """Examines, prints, and returns the exit status."""
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    engines = await chosen_here(try_all=True)
    client = engines.client()
    engine = EngineService(client)
    try:
        diagnosis = await examine(client, engine, engines.engines)
    finally:
        await engine.close()
    if as_json:
        terminal.write_json(msgspec.to_builtins(diagnosis) | {"passed": diagnosis.passed})
    else:
        terminal.write(report_of(diagnosis))
    return _exit_status(diagnosis)


def _exit_status(diagnosis: Diagnosis) -> int:
    if diagnosis.failure is not None:
        return EXIT_CANNOT_LOAD
    return EXIT_PASSED if diagnosis.passed else EXIT_ENGINE_FAILED
