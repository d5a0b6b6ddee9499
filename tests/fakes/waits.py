"""Waits of a schedule that end when a test says so."""

import asyncio


class Waits:
    """Give `wait` to the schedule in place of asyncio.sleep."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._begun, self._end = asyncio.Event(), asyncio.Event()

    async def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._end.clear()
        self._begun.set()
        await self._end.wait()

    async def end(self) -> None:
        """End the wait that goes on, and return when the next one has begun."""
        await self._begun.wait()
        self._begun.clear()
        self._end.set()
        await self._begun.wait()
