"""Whether `qwendesk why` is right: its limit beside real answers, and causes that are planted on a real engine.

    python -m bench.why [limit|causes] [--record FILE] [--only CAUSE...]

`limit` compares the time of a token that the stream loop predicts with what the engine takes, for three models.
`causes` makes an answer slow in each of eight ways and prints what was named. Both need a quiet PC, causes also Linux
and, for the memory limit, root. `--record` writes what the rules saw, for tests/meters/why_runs.json.
"""

import argparse
import asyncio
import contextlib
import ctypes
import functools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path, PurePath

import msgspec

from bench.engine import generated_model
from qwendesk.bench.questions import numbered_text
from qwendesk.cli.why import answer, explained
from qwendesk.core.failures import LoadFailure
from qwendesk.core.messages import Message, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.meters.why import Circumstances, Why
from qwendesk.meters.why_text import why_sentence
from tools.real_models import SMOLLM2

_TARGET = 0.1
_ROUNDS = 5
_TOKENS = 96
_QUESTION = (text_message("user", "Explain in a few paragraphs how a bicycle stays upright while it is ridden."),)


class Loaded(msgspec.Struct):
    """A model in an engine of its own."""

    engine: EngineService
    client: WorkerClient
    report: LoadReport

    @property
    def pid(self) -> int:
        welcome = self.engine.state.welcome
        assert welcome is not None
        return welcome.pid

    async def why(self, messages: tuple[Message, ...] = _QUESTION, n_tokens: int = _TOKENS) -> Why:
        """Explain an answer. Raise RuntimeError if that isn't possible."""
        found = await explained(self.engine, self.client, self.report, messages, n_tokens)
        if isinstance(found, str):
            raise RuntimeError(found)  # noqa: TRY004 - it is a sentence
        return found

    async def answer(self, messages: tuple[Message, ...], n_tokens: int = 8) -> None:
        await answer(self.client, self.report, messages, n_tokens)


@contextlib.asynccontextmanager
async def loaded(model: Path, **options: object) -> AsyncIterator[Loaded]:
    client = WorkerClient()
    engine = EngineService(client)
    try:
        values = {"n_ctx": 4096, "load_mode": "mmap", "speculative": "off"} | options
        report = await engine.load(msgspec.convert({"model": str(model)} | values, LoadOptions))
        if isinstance(report, LoadFailure):
            raise RuntimeError(f"{report.title}. {report.sentence}")  # noqa: TRY004 - it is a failure
        yield Loaded(engine, client, report)
    finally:
        await engine.close()


async def healthy(n_threads: int) -> Why:
    async with loaded(generated_model("small"), n_threads=n_threads) as model:
        await model.answer(_QUESTION)
        return await model.why()


async def busy_neighbour(n_threads: int) -> Why:
    async with loaded(generated_model("small"), n_threads=n_threads) as model:
        await model.answer(_QUESTION)
        with busy_processes(os.cpu_count() or 1):
            return await model.why()


# It ends by itself should nobody end it.
_BUSY = "import time; end = time.monotonic() + 120\nwhile time.monotonic() < end: pass"


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    loops = [subprocess.Popen((sys.executable, "-c", _BUSY)) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


async def too_many_threads(_n_threads: int) -> Why:
    async with loaded(generated_model("small"), n_threads=4 * (os.cpu_count() or 1)) as model:
        await model.answer(_QUESTION)
        return await model.why()


async def not_in_memory(n_threads: int) -> Why:
    """The system takes the pages of the file away again and again, as it does when other programs want the RAM."""
    async with loaded(SMOLLM2.path, n_threads=n_threads) as model:
        await model.answer(_QUESTION)
        taking = asyncio.create_task(_take_pages(model.pid, SMOLLM2.path.name))
        try:
            return await model.why()
        finally:
            taking.cancel()


async def _take_pages(pid: int, name: str) -> None:
    while True:
        await asyncio.to_thread(page_out, pid, name)
        await asyncio.sleep(0.02)


# Numbers of Linux: the calls pidfd_open and process_madvise, and the advice MADV_PAGEOUT.
_PIDFD_OPEN, _PROCESS_MADVISE, _PAGEOUT = 434, 440, 21


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def page_out(pid: int, name: str) -> None:
    """Have the system drop the pages of a mapped file from memory. Raise OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(_PIDFD_OPEN, pid, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "pidfd_open")
    try:
        for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines():
            if line.endswith(name):
                first, _, last = line.split()[0].partition("-")
                each = _Range(int(first, 16), int(last, 16) - int(first, 16))
                if libc.syscall(_PROCESS_MADVISE, descriptor, ctypes.byref(each), ctypes.c_size_t(1), _PAGEOUT, 0) < 0:
                    raise OSError(ctypes.get_errno(), "process_madvise")
    finally:
        os.close(descriptor)


async def memory_limit(n_threads: int) -> Why:
    """The worker is in a control group that has room for half of the mapped file only."""
    group = Path("/sys/fs/cgroup/memory") / f"qwendesk-bench-{os.getpid()}"
    group = group if group.parent.is_dir() else Path("/sys/fs/cgroup") / group.name
    is_first = group.parent.name == "memory"
    group.mkdir()
    parent = group.parent / "cgroup.procs"
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        _forget_file(SMOLLM2.path)
        async with loaded(SMOLLM2.path, n_threads=n_threads) as model:
            parent.write_text(str(os.getpid()))
            await model.answer(_QUESTION)
            limit = _own_memory(model.pid) + SMOLLM2.n_bytes // 2
            (group / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(limit))
            return await model.why(n_tokens=32)
    finally:
        parent.write_text(str(os.getpid()))
        with contextlib.suppress(OSError):
            group.rmdir()


def _forget_file(path: Path) -> None:
    """Have the system drop a file from memory, so that its pages count for the group that reads it next."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _own_memory(pid: int) -> int:
    """Return the bytes of a process that aren't pages of files, and a little room."""
    status = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in status if line.endswith(" kB")}
    return 1024 * (kib["RssAnon"] + kib["RssShmem"] + 20_000)


async def drafts_lose(n_threads: int) -> Why:
    """A list whose lines differ just where the drafts go on."""
    messages = (text_message("user", f"{numbered_text(3, 60)}\nContinue this list."),)
    async with loaded(SMOLLM2.path, n_threads=n_threads, speculative="lookup", draft_n_max=15) as model:
        return await model.why(messages, n_tokens=48)


async def prompt_reread(n_threads: int) -> Why:
    long = text_message("user", f"{numbered_text(1, 90)}\nWhich shelf comes first?")
    async with loaded(generated_model("small"), n_threads=n_threads) as model:
        system = text_message("system", "It is 10:31.")
        await model.answer((system, long))
        later = text_message("system", "It is now 10:32, and the sun shines.")
        follow_up = (later, long, text_message("assistant", "Shelf 7."), text_message("user", "And which is last?"))
        return await model.why(follow_up)


async def f32_cache(n_threads: int) -> Why:
    messages = (text_message("user", f"{numbered_text(1, 130)}\nWhich shelf comes first?"),)
    async with loaded(SMOLLM2.path, n_threads=n_threads, type_k="f32", type_v="f32") as model:
        return await model.why(messages)


async def long_context(n_threads: int) -> Why:
    messages = (text_message("user", f"{numbered_text(1, 130)}\nWhich shelf comes first?"),)
    async with loaded(SMOLLM2.path, n_threads=n_threads) as model:
        return await model.why(messages)


PLANTED: dict[str, Callable[[int], Awaitable[Why]]] = {
    "": healthy,
    **{
        each.__name__: each
        for each in (
            busy_neighbour,
            too_many_threads,
            not_in_memory,
            memory_limit,
            drafts_lose,
            prompt_reread,
            f32_cache,
            long_context,
        )
    },
}


async def print_causes(only: list[str], n_threads: int, record: Callable[[str, Circumstances], None]) -> bool:
    """Plant each cause, print what was named, and return whether it was always right. `record` gets what there was."""
    right = True
    for cause, plant in PLANTED.items():
        if only and (cause or "healthy") not in only:
            continue
        try:
            why = await plant(n_threads)
        except (OSError, RuntimeError) as error:
            print(f"{cause or 'healthy'}: not planted: {error}")
            right = False
            continue
        named = [each.cause for each in why.findings]
        is_right = cause in named if cause else not named
        right = right and is_right
        record(cause or "healthy", why.circumstances)
        print(f"{cause or 'healthy'}: {'ok' if is_right else 'WRONG'}: {', '.join(named) or 'nothing'}")
        print(f"    {why_sentence(why)}")
        time = why.time
        parts = (time.total_s, time.engine_s, time.limit_s, time.ram_s, time.cache_s, time.sampling_s, time.own_s)
        print("    ms: " + ", ".join(f"{1000 * each:.2f}" for each in parts), flush=True)
    return right


def _record(file: Path | None, cause: str, found: Circumstances) -> None:
    """Add what the rules saw to a file, in place of what it has of the same cause. Folders are left out."""
    if file is None:
        return
    model = PurePath(found.options.model).name
    found = msgspec.structs.replace(found, options=msgspec.structs.replace(found.options, model=model))
    seen = msgspec.json.decode(file.read_bytes(), type=dict[str, Circumstances]) if file.exists() else {}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(seen | {cause: found}), indent=1) + b"\n")


async def print_limits(n_threads: int) -> bool:
    """Print for each model what the stream loop predicts and what the engine takes. Return whether all are near."""
    print("| model | predicted ms | engine ms | apart | target |\n|---|---|---|---|---|")
    right = True
    models = {"small": generated_model("small"), "SmolLM2": SMOLLM2.path, "1b": generated_model("1b")}
    for name, path in models.items():
        async with loaded(path, n_threads=n_threads) as model:
            rounds = [(await model.why(n_tokens=48)).time for _ in range(_ROUNDS)]
        predicted, real = (
            statistics.median(values) for values in zip(*((t.limit_s, t.engine_s) for t in rounds), strict=True)
        )
        apart = predicted / real - 1
        right = right and abs(apart) <= _TARGET
        verdict = "met" if abs(apart) <= _TARGET else "MISSED"
        print(
            f"| {name} | {1000 * predicted:.2f} | {1000 * real:.2f} | {apart:+.1%} | within {_TARGET:.0%}: {verdict} |",
            flush=True,
        )
    return right


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.why", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=("limit", "causes"), help="only this part")
    parser.add_argument("--threads", type=int, default=0, help="of the engine; 0 takes one for each core")
    parser.add_argument("--only", nargs="*", default=[], help="only these causes")
    parser.add_argument("--record", type=Path, help="write what the rules saw")
    asked = parser.parse_args()
    right = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        if asked.part != "causes":
            right = asyncio.run(print_limits(asked.threads))
        if asked.part != "limit":
            record = functools.partial(_record, asked.record)
            right = asyncio.run(print_causes(asked.only, asked.threads, record)) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
