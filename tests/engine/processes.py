"""Waits for what another process does."""

import asyncio
import contextlib

import psutil


async def until_busy_for(process: psutil.Process, cpu_s: float) -> None:
    """Wait until the process has used this much more processor time, or is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        used_before = process.cpu_times().user
        while process.cpu_times().user < used_before + cpu_s:  # noqa: ASYNC110 - nobody is told of another process's time
            await asyncio.sleep(0.02)
