"""Ask the engine how much memory a load would take, with a worker that is started for this one request."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from qwendesk.core.options import DecidedOptions
from qwendesk.core.translation import tr
from qwendesk.engine.dry_run_protocol import Estimate, Estimated, decode_estimated
from qwendesk.engine.process import worker_command, worker_environment
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, encode_line

# The GPU driver may take seconds to wake the card; the request itself takes less than a second.
TIMEOUT_S = 60.0


async def ask_engine(
    options: DecidedOptions,
    *,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Estimated:
    """Return the bytes that the engine would allocate on each device to load with `options`.

    If that fails, `problem` says why: the engine could not be started, crashed, took too long or refused the file.
    `environment` selects the engine and is added to this process's own. No process is left running.
    """
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    else:
        flags = 0
    try:
        process = await asyncio.create_subprocess_exec(
            *(command or worker_command()),
            "--estimate",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=LINE_LIMIT_BYTES,
            env=worker_environment(environment or {}),
            creationflags=flags,
        )
    except OSError as error:
        return Estimated(id=0, problem=tr("The engine couldn't be started: {0}.", error.strerror or error))
    try:
        async with asyncio.timeout(timeout_s):
            line, _ = await process.communicate(encode_line(Estimate(id=0, options=options)))
        return decode_estimated(line)
    except TimeoutError:
        return Estimated(id=0, problem=tr("The engine didn't respond within {0} s.", f"{timeout_s:.0f}"))
    except msgspec.DecodeError:
        return Estimated(id=0, problem=tr("The engine stopped without an answer (exit code {0}).", process.returncode))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
