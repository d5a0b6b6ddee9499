"""Asks the engine itself what a load would take: a worker is started for the one question and ends after it."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from qwendesk.core.options import LoadOptions
from qwendesk.engine.process import worker_command, worker_environment
from qwendesk.engine.protocol import LINE_LIMIT_BYTES, Estimate, Estimated, decode_estimated, encode_line

LONGEST_S = 60.0
"""A GPU's driver may take seconds to wake the card; the question itself takes under one."""


async def ask_engine(
    options: LoadOptions,
    *,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    longest_s: float = LONGEST_S,
) -> Estimated:
    """The engine's own bytes per device for `options`, in which nothing may be left to "auto" that a load needs.

    `problem` says why there are none: it cannot be started, it died, it took too long, it refuses the file.
    `environment` is added to this process's own (which engine). No process is left behind.
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
        return Estimated(id=0, problem=f"The engine could not be started: {error.strerror or error}.")
    try:
        async with asyncio.timeout(longest_s):
            line, _ = await process.communicate(encode_line(Estimate(id=0, options=options)))
        return decode_estimated(line)
    except TimeoutError:
        return Estimated(id=0, problem=f"The engine did not answer within {longest_s:.0f} s.")
    except msgspec.DecodeError:
        return Estimated(id=0, problem=f"The engine ended without an answer (exit code {process.returncode}).")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
