"""The generated models of the checks, and a loaded engine that answers."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, text_message
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport
from qwendesk.engines.load_decision import facts_for, machine_now, plan_of
from tools.hollow_model import write_hollow
from tools.random_model import write_random_mmproj

_WORDS = ("the", "model", "reads", "a", "long", "prompt", "and", "keeps", "what", "it", "has", "read", "so", "that")
_TOKENS_PER_WORD = 1.29
"""Of these words in the generated vocabulary."""


class CheckFailed(Exception):
    """A check could not go on; the text says why."""


class Models:
    """Files that are written when they are first needed."""

    def __init__(self, folder: Path, size: str, llama_bench: Path | None) -> None:
        self._folder, self.size, self.llama_bench = folder, size, llama_bench
        folder.mkdir(parents=True, exist_ok=True)

    def any(self, size: str) -> Path:
        """Return a model of real dimensions, whose weights may all be zero."""
        if size == self.size:
            return self.random()
        path = self._folder / f"hollow-{size}.gguf"
        return path if path.exists() else write_hollow(path, size, loadable=True)

    def random(self) -> Path:
        """Return the model of real dimensions with random weights. Raises CheckFailed if `make_random` didn't end."""
        path = self._random
        if not path.exists():
            raise CheckFailed(f"{path} was not made")
        return path

    async def make_random(self) -> Path:
        """Write that model unless it is there, in a process of its own, which ends with the task."""
        path = self._random
        if not path.exists():
            unfinished = path.with_suffix(".part")
            done = await run_program(
                (sys.executable, "-m", "tools.random_model", "--size", self.size, str(unfinished)), os.environ
            )
            if done.code:
                raise CheckFailed(f"{path.name} was not made: {done.errors[-400:]}")
            unfinished.rename(path)
        return path

    @property
    def _random(self) -> Path:
        return self._folder / f"random-{self.size}.gguf"

    def random_mmproj(self, embedding_length: int) -> Path:
        """Return a vision encoder of real dimensions for that model."""
        path = self._folder / f"mmproj-{embedding_length}-F16.gguf"
        if not path.exists():
            write_random_mmproj(path, embedding_length)
        return path


class Done(msgspec.Struct, frozen=True):
    code: int
    output: str
    errors: str


async def run_program(command: Sequence[str], variables: Mapping[str, str]) -> Done:
    """Run a program to its end. It is killed if the task is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(variables),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Done(process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace"))


class Engine:
    """A worker that has loaded a model, or is about to."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        async def environment() -> Mapping[str, str]:
            return variables

        self.client = WorkerClient(environment=environment)
        self._forbidden: tuple[str, ...] = ()

    async def machine(self) -> MachineMemory:
        """Return the memory that is free now, by a worker that ends again. Raises CheckFailed without a GPU engine."""
        devices = await self.client.probe()
        await self.client.unload()
        if isinstance(devices, EngineExit):
            raise CheckFailed(devices.sentence)
        if not any(device.kind == "gpu" for device in devices.devices):
            raise CheckFailed("This engine has no GPU backend: install one with ENGINE=cuda make run.")
        return machine_now(devices)

    async def plan(self, options: LoadOptions) -> Plan:
        """Return the app's own plan. Raises CheckFailed where there is none."""
        files = facts_for(options)
        if isinstance(files, LoadFailure):
            raise CheckFailed(files.sentence)
        plan = plan_of(*files, await self.machine(), options)
        if isinstance(plan, LoadFailure):
            raise CheckFailed(plan.sentence)
        return plan

    async def load(self, options: DecidedOptions) -> LoadReport:
        """Raises CheckFailed if the engine refuses."""
        report = await self.client.load(options)
        if isinstance(report, LoadFailure):
            raise CheckFailed(f"{report.kind}: {report.sentence} {' / '.join(report.engine_lines[-4:])}")
        self._forbidden = tuple(f"{token}=-inf" for token in report.end_tokens)
        return report

    async def answer(self, messages: Sequence[Message], n_tokens: int) -> tuple[str, AnswerStats]:
        """Return a greedy answer of exactly `n_tokens` tokens, and its figures. Raises CheckFailed if it fails."""
        options = GenerationOptions(
            temperature=0.0,
            presence_penalty=0.0,
            enable_thinking=False,
            max_tokens=n_tokens,
            logit_bias=self._forbidden,
        )
        text = ""
        async for event in self.client.generate(Generate(messages=tuple(messages), options=options)):
            if isinstance(event, Delta):
                text += event.text
            elif isinstance(event, Finished):
                if event.stop_reason != "max_tokens":
                    raise CheckFailed(f"the answer ended too early: {event.stop_reason}")
                return text, event.stats
        raise CheckFailed(f"the engine did not answer: {event}")


@contextlib.asynccontextmanager
async def running_engine(variables: Mapping[str, str] = MappingProxyType({})) -> AsyncIterator[Engine]:
    """Yield an engine whose worker gets these environment variables and ends with the block."""
    engine = Engine(variables)
    try:
        yield engine
    finally:
        await engine.client.close()


def long_question(n_tokens: int, start: str = "") -> Message:
    """Return a question of about `n_tokens` tokens."""
    count = round(n_tokens / _TOKENS_PER_WORD)
    words = (_WORDS[(number * number + 7 * number) % len(_WORDS)] for number in range(count))
    return text_message("user", f"{start} {' '.join(words)}")


def changed(options: DecidedOptions, **changes: object) -> DecidedOptions:
    """Return `options` with other values, checked as they come from the command line."""
    return msgspec.convert(msgspec.structs.asdict(options) | changes, DecidedOptions)
