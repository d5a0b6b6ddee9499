"""The engine as the app sees it: load a model, stream answers, survive its death.

`EngineClient` is the contract; engine/client.py fulfils it with a worker process, tests with a scripted fake.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.engine.protocol import (
    Begun,
    Delta,
    Devices,
    Finished,
    LoadReport,
    Measured,
    PromptProgress,
    RequestFailed,
    Welcome,
)
from qwendesk.engine.state import EngineNews

AnswerItem = PromptProgress | Delta | Finished | RequestFailed | EngineDeath
"""What an answer consists of. The last item is one of the last three, and nothing comes after it."""


class AnswerStream(Protocol):
    """One answer while it is made. Dropping it, or cancelling the task that reads it, cancels the answer."""

    def __aiter__(self) -> AsyncIterator[AnswerItem]: ...

    async def cancel(self) -> None:
        """Ask the engine to stop. The stream still ends by its own last item, "cancelled" unless it was faster."""

    async def answer_now(self) -> None:
        """Ask the engine to end the thought and go on with the answer."""


class EngineClient(Protocol):
    """One engine. Expected failures are return values; nothing here raises on them."""

    def subscribe(self, callback: Callable[[EngineNews], None]) -> Callable[[], None]:
        """Call `callback` on everything that can change the state (no Delta). Returns what ends it."""

    async def start(self) -> Welcome | EngineDeath:
        """Have a worker running. Returns at once when one is."""

    async def load(self, options: LoadOptions) -> LoadReport | LoadFailure:
        """Load a model; starts the worker if none runs. No value of `options` may be left to be decided."""

    async def cancel_load(self) -> None:
        """Stop the load that runs, if one does; `load` then returns a failure of kind "cancelled"."""

    async def unload(self) -> None:
        """End the worker, so that all its memory is free again."""

    async def probe(self) -> Devices | EngineDeath:
        """The compute devices and their memory now; starts the worker if none runs."""

    async def measure(
        self, messages: Sequence[Message], pictures: Sequence[ImagePart], options: GenerationOptions
    ) -> Measured | RequestFailed | EngineDeath:
        """Count a conversation's tokens and what pictures would fill, without reading anything."""

    def generate(
        self,
        messages: Sequence[Message],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        begun: Begun | None = None,
    ) -> AnswerStream:
        """Begin an answer, or go on with one that was `begun`."""

    async def close(self) -> None:
        """End everything; the client cannot be used afterwards."""
