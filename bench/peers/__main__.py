"""The app beside llama-server, built from the same llama.cpp: `python -m bench.peers`.

    python -m tools.build_peer      # once: llama-server from the engine's own source
    python -m bench.peers [--rounds 3] [--rows NAME,...] [--threads N]
    LLAMA_SERVER=/path/to/llama-server python -m bench.peers

Both load one file with the same context, batches and threads, and take turns; who begins alternates. A row's ratio is
the median of the rounds' ratios. Times are those of the client, from sending a question to the first text. The app's
worker is the real one, through the app's own client. llama-server has one slot and its own defaults otherwise.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from bench.peers.app_engine import AppEngine
from bench.peers.results import Pair, Result, table
from bench.peers.rows import ROWS, Material, Row, chosen_rows
from bench.peers.server import LlamaServer
from bench.peers.sides import Setup, Side, SideFailure, Turn
from qwendesk.core import paths
from qwendesk.hub.gguf import read_facts
from tools import bench_model
from tools.build_peer import peer_server
from tools.setup.project import ROOT

_SIZE = "small"
_LOWEST = 19
_COUNTED_WORDS = 1000


class Options(msgspec.Struct, frozen=True):
    rows: tuple[Row, ...]
    rounds: int
    n_threads: int


def parse_options(arguments: Sequence[str]) -> Options:
    """Return the options of the command line. Exit with a sentence for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    names = ",".join(row.name for row in ROWS)
    parser.add_argument("--rows", default=names, metavar="NAME,...", help=f"some of: {names.replace(',', ', ')}")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.threads < 1:
        parser.error("--rounds and --threads must be at least 1.")
    try:
        return Options(chosen_rows(chosen.rows), chosen.rounds, chosen.threads)
    except ValueError as error:
        parser.error(str(error))


def find_server() -> Path:
    """Return llama-server: the one that LLAMA_SERVER names, or that tools.build_peer built.

    Exit with a sentence if it is missing.
    """
    named = os.environ.get("LLAMA_SERVER")
    server = Path(named) if named else peer_server()
    if server.is_file():
        return server
    if named:
        raise SystemExit(f"LLAMA_SERVER names {server}, which is no file.")
    raise SystemExit(
        "There is no llama-server. Build it with `python -m tools.build_peer`, or set LLAMA_SERVER to its path."
    )


class Sides:
    """Both sides with the model of the current row. A model stays loaded while the next row has the same setup."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._setup: Setup | None = None
        self._open: tuple[AppEngine, LlamaServer] | None = None
        self.material = Material(folder)

    def load(self, setup: Setup) -> tuple[Side, Side]:
        """Return the app's side and the peer's with this setup, after a first answer that does not count."""
        if self._open is None or self._setup != setup:
            self.close()
            ours = AppEngine(setup)
            try:
                peer = LlamaServer(self._server, setup)
            except SideFailure:
                ours.close()
                raise
            self._open, self._setup = (ours, peer), setup
            self._warm_up(ours, peer)
        return self._open

    def close(self) -> None:
        for side in self._open or ():
            side.close()
        self._open = None

    def _warm_up(self, ours: AppEngine, peer: LlamaServer) -> None:
        self.material = Material(self._folder)
        text = self.material.text("count", _COUNTED_WORDS)
        self.material = Material(self._folder, _COUNTED_WORDS / ours.count(text))
        for side in (ours, peer):
            side.ask((Turn("user", "Write."),), 8, "warm-up")


def measure_row(row: Row, sides: Sides, setup: Setup, rounds: int) -> Result:
    """Return the row's rounds, or why it was not measured."""
    if setup.speculation == "mtp" and not read_facts(setup.model).nextn_layers:
        return Result(row, skipped=f"{setup.model.name} has no MTP layers")
    try:
        ours, peer = sides.load(setup)
        with busy_processes(row.busy_processes):
            numbers = range(rounds * row.pairs_per_round)
            return Result(row, tuple(_pair(row, ours, peer, sides.material, number) for number in numbers))
    except SideFailure as failure:
        sides.close()
        return Result(row, skipped=str(failure))


def _pair(row: Row, ours: Side, peer: Side, material: Material, number: int) -> Pair:
    order = (ours, peer) if number % 2 == 0 else (peer, ours)
    answers = {side.is_ours: row.measure(side, material, f"{row.name}-{number}") for side in order}
    return Pair(
        row.value(answers[True]),
        row.value(answers[False]),
        answers[True].processed_tokens,
        answers[False].processed_tokens,
    )


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` cores busy with processes of the lowest priority, each in a session of its own."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        for process in processes:
            _set_lowest_priority(psutil.Process(process.pid))
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _set_lowest_priority(process: psutil.Process) -> None:
    if sys.platform == "win32":
        process.nice(psutil.IDLE_PRIORITY_CLASS)
        return
    process.nice(_LOWEST)
    # Linux with autogroups compares priorities only within a session; between sessions, this value counts.
    autogroup = Path(f"/proc/{process.pid}/autogroup")
    if autogroup.exists():
        autogroup.write_text(str(_LOWEST), encoding="ascii")


def row_setup(row: Row, text_model: Path, n_threads: int) -> Setup:
    """Return how both sides load the model of a row."""
    n_threads = 1 if row.on_one_thread else n_threads
    if row.model == "demo":
        return Setup(paths.demo_model(), n_threads, paths.demo_mmproj(), speculation=row.speculation)
    return Setup(text_model, n_threads, speculation=row.speculation)


def _text_model() -> Path:
    """Return the generated model with Qwen3.5-35B-A3B's architecture, made if it is not there."""
    model = ROOT / ".work" / f"bench-{_SIZE}-q4_k_m.gguf"
    if not model.exists():
        print(f"generating {model.name} ...", flush=True)
        model.parent.mkdir(exist_ok=True)
        bench_model.make(model, _SIZE)
    return model


def main() -> None:
    options = parse_options(sys.argv[1:])
    server = find_server()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # `timeout` and the like must leave no process behind
    text_model = _text_model()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        sides = Sides(server, Path(folder))
        try:
            for row in options.rows:
                setup = row_setup(row, text_model, options.n_threads)
                results.append(measure_row(row, sides, setup, options.rounds))
                print(results[-1], flush=True)
        finally:
            sides.close()
    print(f"\n{text_model.name}, {options.n_threads} threads, {options.rounds} rounds, medians\n")
    print(table(results))


if __name__ == "__main__":
    main()
