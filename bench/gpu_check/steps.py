"""Steps with a time limit each, in a run with a budget: rows are printed as they come, and what is left is open."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from bench.gpu_check.models import CheckFailed, Models


class Found(msgspec.Struct, frozen=True):
    """What a step found."""

    rows: tuple[tuple[str, ...], ...]
    """The cells of rows of its part's table."""
    is_right: bool = True


class Step(msgspec.Struct, frozen=True):
    name: str
    limit_s: float
    """It is stopped after so many seconds: one that hangs must not take the time of all others."""
    find: Callable[[Models], Awaitable[Found]]
    """Raises CheckFailed or OSError if it can't go on."""


class Part(msgspec.Struct, frozen=True):
    """Steps whose rows are one table."""

    name: str
    columns: tuple[str, ...]
    steps: tuple[Step, ...]
    needs_model: bool = True
    """Whether the generated model of the largest size must be there."""


class Run:
    """Runs the steps in order until the budget is spent. The time for closing what a step opened comes on top."""

    def __init__(
        self, budget_s: float, say: Callable[[str], None] = print, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._began, self._budget_s = clock(), budget_s
        self.open: list[str] = []
        """The steps without a result, each with the reason."""
        self.wrong: list[str] = []
        """The steps whose result is not what it has to be, and those that failed."""

    @property
    def _left_s(self) -> float:
        return self._budget_s - (self._clock() - self._began)

    async def take(self, part: Part, models: Models) -> None:
        """Print the part's table, and note what is open or wrong."""
        began, has_head = self._clock(), False
        for step in part.steps:
            name = f"{part.name}: {step.name}"
            if self._left_s <= 0:
                self.open.append(f"{name} (no time was left)")
                continue
            if not has_head:
                has_head = True
                self._say(f"\n### {part.name}\n\n{_line(part.columns)}\n{_line(['---'] * len(part.columns))}")
            limit_s = min(step.limit_s, self._left_s)
            try:
                async with asyncio.timeout(limit_s):
                    found = await step.find(models)
            except TimeoutError:
                self.open.append(f"{name} (stopped after {limit_s:.0f} s)")
            except (CheckFailed, OSError) as error:
                self.wrong.append(f"{name}: {error}")
            else:
                self._say("\n".join(map(_line, found.rows)))
                if not found.is_right:
                    self.wrong.append(name)
        if has_head:
            self._say(f"\n({part.name}: {self._clock() - began:.0f} s)")

    def end(self) -> int:
        """Print what is open and wrong. Return the exit code: 1 if something is wrong."""
        for title, names in (("Wrong", self.wrong), ("Open", self.open)):
            if names:
                self._say(f"\n### {title}\n\n" + "\n".join(f"- {name}" for name in names))
        self._say(f"\n({self._clock() - self._began:.0f} of {self._budget_s:.0f} s)")
        return int(bool(self.wrong))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
