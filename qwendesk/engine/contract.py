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
    Measure,
    Measured,
    PromptProgress,
    RequestFailed,
    SaveState,
    StateSaved,
    Tokenize,
    Tokenized,
    Warm,
    Warmed,
    Welcome,
)
from qwendesk.engine.state import EngineEvent

AnswerItem = PromptProgress | Delta | CallDelta | Called | Finished | RequestFailed | EngineExit
"""The items of an answer. It ends with exactly one Finished, RequestFailed or EngineExit."""


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

    async def measure(self, request: Measure) -> Measured | RequestFailed | EngineExit:
        """Count the tokens of a conversation and of other images, without evaluating anything."""

    async def tokenize(self, request: Tokenize) -> Tokenized | RequestFailed | EngineExit:
        """Return the tokens of a text."""

    def generate(self, request: Generate) -> AnswerStream:
        """Generate an answer, or continue the partial answer `begun`. With `chat`, going back to a chat is instant."""

    async def warm(self, request: Warm) -> Warmed | RequestFailed | EngineExit:
        """Process ahead what the next prompt of a chat begins with. Ends early when anything else is asked."""

    async def save_state(self, request: SaveState) -> StateSaved | RequestFailed | EngineExit:
        """Write the state of a chat to a file, unless it is too large."""

    async def close(self) -> None:
        """Stop the worker. The client cannot be used afterwards."""


class BenchClient(EngineClient, Protocol):
    """A client that can also measure the loaded model."""

    async def bench(
        self, test: BenchTest, show: Callable[[BenchProgress], None] | None = None
    ) -> Benched | RequestFailed | EngineExit:
        """Measure the loaded model, and call `show` as it gets further."""
