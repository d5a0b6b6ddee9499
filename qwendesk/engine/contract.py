"""The app's interface to the engine: load a model, stream answers, and go on if the worker crashes.

`EngineClient` is the interface. engine/client.py implements it with a worker process, and tests with a scripted fake.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from qwendesk.core.benchmarks import BenchTest
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.protocol import (
    Benched,
    BenchProgress,
    CallDelta,
    Called,
    Delta,
    Devices,
    Finished,
    Generate,
    LoadReport,
    PromptProgress,
    Query,
    ReplyT_co,
    RequestFailed,
    Welcome,
)
from qwendesk.engine.state import EngineEvent

# The items of an answer. It ends with exactly one Finished, RequestFailed or EngineExit.
AnswerItem = PromptProgress | Delta | CallDelta | Called | Finished | RequestFailed | EngineExit


class AnswerStream(Protocol):
    """The stream of one answer. Deleting it, or cancelling the task that reads it, cancels the answer."""

    def __aiter__(self) -> AsyncIterator[AnswerItem]: ...

    async def cancel(self) -> None:
        """Ask the engine to stop the answer.

        The stream still ends with its own last item: Finished with "cancelled", unless the answer ended before that.
        """

    async def answer_now(self) -> None:
        """Ask the engine to end the reasoning and begin the answer."""


class EngineClient(Protocol):
    """A client of one engine. Expected failures are returned, not raised.

    Requests are values of the protocol; the client sets their `id`.
    """

    def subscribe(self, callback: Callable[[EngineEvent], None]) -> Callable[[], None]:
        """Call `callback` with everything that can change the state, until the returned function is called.

        Pieces of text and of calls do not change the state, so they are not passed on.
        """

    async def start(self) -> Welcome | EngineExit:
        """Start a worker. Return at once if one is running."""

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        """Load a model. Start a worker if none is running."""

    async def cancel_load(self) -> None:
        """Stop the load in progress, if any. `load` then returns a failure of kind "cancelled"."""

    async def unload(self) -> None:
        """Stop the worker, which frees all its memory."""

    async def probe(self) -> Devices | EngineExit:
        """Return the compute devices and their current memory. Start a worker if none is running."""

    def generate(self, request: Generate) -> AnswerStream:
        """Generate an answer, or continue the partial answer `begun`. With `chat`, going back to a chat is instant."""

    async def ask(self, request: Query[ReplyT_co]) -> ReplyT_co | RequestFailed | EngineExit:
        """Return the reply to a request such as Measure or Warm."""

    async def close(self) -> None:
        """Stop the worker. The client cannot be used afterwards."""


class BenchClient(EngineClient, Protocol):
    """A client that can also measure the loaded model."""

    async def bench(
        self, test: BenchTest, show: Callable[[BenchProgress], None] | None = None
    ) -> Benched | RequestFailed | EngineExit:
        """Measure the loaded model, and call `show` as it gets further."""
