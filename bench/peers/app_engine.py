"""The app's side: a real worker process, asked through the app's own client."""

import asyncio
import hashlib
import tempfile
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bench.peers.sides import Answer, Pieces, Setup, SideFailure, Turn, sampling_values
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.core.options import DecidedOptions
from qwendesk.engine import protocol
from qwendesk.engine.client import WorkerClient

_MOST_STATE_BYTES = 4 * 1024**3

ResultT = TypeVar("ResultT")


class AppEngine:
    """A worker with a loaded model. It implements Side."""

    is_ours = True

    def __init__(self, setup: Setup, command: Sequence[str] | None = None) -> None:
        """`command` starts another worker than the app's."""
        self._setup = setup
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory(prefix="bench-states-")
        self._forbid_end: tuple[str, ...] = ()
        self._client = self._run(_new_client(command))
        try:
            self._load()
        except SideFailure:
            self.close()
            raise

    def ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        return self._run(self._ask(turns, n_tokens, chat))

    def save(self, chat: str) -> None:
        request = protocol.SaveState(chat=chat, path=str(self._state_file(chat)), most_bytes=_MOST_STATE_BYTES)
        saved = self._run(self._client.ask(request))
        if not isinstance(saved, protocol.StateSaved) or not saved.n_bytes:
            raise SideFailure(f"The state of the chat was not saved: {saved}")

    def restart(self) -> None:
        self._run(self._client.unload())
        self._load()

    def prepare(self, turns: tuple[Turn, ...], chat: str) -> None:
        request = protocol.Warm(messages=tuple(map(_message, turns)), options=self._options(1), chat=chat)
        self._run(self._client.ask(request))

    def close(self) -> None:
        self._run(self._client.close())
        self._runner.close()
        self._folder.cleanup()

    def count(self, text: str) -> int:
        """Return how many tokens a chat with this one question has."""
        request = protocol.Measure(messages=(_message(Turn("user", text)),), options=self._options(1))
        measured = self._run(self._client.ask(request))
        if not isinstance(measured, protocol.Measured):
            raise SideFailure(f"The tokens could not be counted: {measured}")
        return measured.prompt_tokens

    def _load(self) -> None:
        setup = self._setup
        values: dict[str, object] = {"model": str(setup.model), "n_ctx": setup.n_ctx, "n_threads": setup.n_threads}
        values |= {"mmproj": str(setup.mmproj or ""), "n_gpu_layers": 0}
        if setup.speculation:
            values["speculative"] = setup.speculation
        try:
            options = msgspec.convert(values, DecidedOptions)
        except msgspec.ValidationError as error:
            raise SideFailure(f"The app does not take these options: {error}") from error
        report = self._run(self._client.load(options))
        if isinstance(report, LoadFailure):
            raise SideFailure(f"{report.title}: {report.sentence}")
        self._forbid_end = tuple(f"{token}=-inf" for token in report.end_tokens)

    async def _ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        request = protocol.Generate(
            messages=tuple(map(_message, turns)),
            options=self._options(n_tokens),
            chat=chat,
            state_file=str(self._state_file(chat)),
        )
        pieces = Pieces(time.perf_counter())
        async for event in self._client.generate(request):
            if isinstance(event, protocol.Delta):
                pieces.add(event.text, event.tokens, time.perf_counter())
            elif isinstance(event, protocol.Finished):
                return pieces.answer(event.stats.reread_tokens)
            elif not isinstance(event, protocol.PromptProgress):
                raise SideFailure(f"The engine did not answer: {event}")
        raise SideFailure("The engine did not finish its answer.")

    def _options(self, n_tokens: int) -> GenerationOptions:
        options = GenerationOptions(enable_thinking=False, max_tokens=n_tokens, logit_bias=self._forbid_end)
        return msgspec.structs.replace(options, **sampling_values(self._setup.values))

    def _state_file(self, chat: str) -> Path:
        return Path(self._folder.name) / f"{chat}.state"

    def _run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._runner.run(work)


async def _new_client(command: Sequence[str] | None) -> WorkerClient:
    return WorkerClient(command)


def _message(turn: Turn) -> Message:
    if turn.picture is None:
        return Message(turn.role, (TextPart(turn.text),))
    picture = ImagePart(str(turn.picture), hashlib.sha256(turn.picture.read_bytes()).hexdigest())
    return Message(turn.role, (picture, TextPart(turn.text)))
