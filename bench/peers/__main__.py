"""The app beside llama-server, built from the same llama.cpp: `python -m bench.peers`.

    python -m tools.build_peer      # once: llama-server from the engine's own source
    python -m tools.real_models smollm2
    python -m bench.peers [--rounds 5] [--rows NAME,...] [--threads N]
    LLAMA_SERVER=/path/to/llama-server python -m bench.peers

All sides load one file with the same context, batches and threads, and take turns; who begins changes. A row is met if
the quartile of its rounds' ratios that is nearer to the target's wrong side meets it: three of four rounds are better.
Beside busy processes the better of llama-server and our own worker with one thread counts. Times are those of the
client, from sending a question to the first text. The app's worker is the real one, through the app's own client.
llama-server has its own defaults, and one slot for each client.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import psutil

from bench.peers.app_engine import AppEngine
from bench.peers.programs import AppServer
from bench.peers.results import Pair, Result, table
from bench.peers.rows import ROWS, Material, Model, PeerName, Row, chosen_rows
from bench.peers.server import LlamaServer
from bench.peers.sides import Answer, Setup, Side, SideFailure, Turn
from qwendesk.core import paths
from qwendesk.hub.gguf import read_facts
from tools import bench_model
from tools.build_peer import peer_server
from tools.real_models import SMOLLM2
from tools.setup.project import ROOT

_SIZES: Mapping[Model, str] = MappingProxyType({"generated": "small", "words": "small-248k"})
_LOWEST = 19
_COUNTED_WORDS = 1000
# OpenMP's threads spin for a moment after a side's last token; the next side isn't measured beside them. Beside busy
# processes it is longer than two of the idle worker's looks at them, of which the first still sees the other side.
_REST_S, _REST_BESIDE_BUSY_S = 0.2, 2.2


class Options(msgspec.Struct, frozen=True):
    rows: tuple[Row, ...]
    rounds: int
    n_threads: int


def parse_options(arguments: Sequence[str]) -> Options:
    """Return the options of the command line. Exit with a sentence for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
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
    """All sides with the model of the current row. They stay loaded while the next row has the same ones."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._wanted: tuple[Setup, tuple[PeerName, ...]] | None = None
        self._open: list[Side] = []
        self.material = Material(folder)

    def load(self, setup: Setup, peers: tuple[PeerName, ...]) -> tuple[Side, dict[PeerName, Side]]:
        """Return the app's side and the peers with this setup, after a first answer that does not count."""
        if self._wanted != (setup, peers):
            self.close()
            ours = self._opened(AppServer(setup) if setup.n_clients > 1 else AppEngine(setup))
            others = [self._opened(self._peer(name, setup)) for name in peers]
            if isinstance(ours, AppEngine):
                self._measure_words(ours)
            for side in (ours, *others):
                side.ask((Turn("user", "Write."),), 8, "warm-up")
            self._wanted = setup, peers
        return self._open[0], dict(zip(peers, self._open[1:], strict=True))

    def close(self) -> None:
        self._wanted = None
        while self._open:
            self._open.pop().close()

    def _opened(self, side: Side) -> Side:
        self._open.append(side)
        return side

    def _peer(self, name: PeerName, setup: Setup) -> Side:
        match name:
            case "llama-server":
                return LlamaServer(self._server, setup)
            case "ours with one thread":
                return AppEngine(msgspec.structs.replace(setup, n_threads=1))
            case "ours that looks at nobody":
                return AppEngine(setup, (sys.executable, "-m", "bench.peers.still_worker"))

    def _measure_words(self, ours: AppEngine) -> None:
        self.material = Material(self._folder)
        text = self.material.text("count", _COUNTED_WORDS)
        self.material = Material(self._folder, _COUNTED_WORDS / ours.count(text))


def measure_row(row: Row, sides: Sides, setup: Setup, rounds: int) -> Result:
    """Return the row's rounds, or why it was not measured."""
    if setup.speculation == "mtp" and not read_facts(setup.model).nextn_layers:
        return Result(row, skipped=f"{setup.model.name} has no MTP layers")
    if not setup.model.is_file():
        return Result(row, skipped=f"{setup.model.name} is missing: python -m tools.real_models smollm2")
    try:
        ours, peers = sides.load(setup, row.peers)
        with busy_processes(row.n_busy, is_low=row.is_busy_low):
            return Result(row, tuple(_round(row, ours, peers, sides.material, number) for number in range(rounds)))
    except SideFailure as failure:
        sides.close()
        return Result(row, skipped=str(failure))


def _round(row: Row, ours: Side, peers: Mapping[PeerName, Side], material: Material, number: int) -> tuple[Pair, ...]:
    first = number * row.pairs_per_round
    return tuple(_pair(row, ours, peers, material, first + place) for place in range(row.pairs_per_round))


def _pair(row: Row, ours: Side, peers: Mapping[PeerName, Side], material: Material, number: int) -> Pair:
    """Let all sides answer. Who begins changes with the number."""
    sides = [ours, *peers.values()]
    start = number % len(sides)
    answers: dict[int, Answer] = {}
    for side in sides[start:] + sides[:start]:
        time.sleep(_REST_BESIDE_BUSY_S if row.n_busy else _REST_S)
        answers[id(side)] = row.measure(side, material, f"{row.name}-{number}")
    values = {name: row.value(answers[id(side)]) for name, side in peers.items()}
    theirs = answers[id(next(iter(peers.values())))]
    return Pair(row.value(answers[id(ours)]), values, answers[id(ours)].processed_tokens, theirs.processed_tokens)


@contextlib.contextmanager
def busy_processes(count: int, *, is_low: bool) -> Iterator[None]:
    """Keep `count` cores busy with processes of the lowest or normal priority, each in a session of its own."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        for process in processes if is_low else ():
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


def row_setup(row: Row, models: Mapping[Model, Path], n_threads: int) -> Setup:
    """Return how all sides load the model of a row."""
    mmproj = paths.demo_mmproj() if row.model == "demo" else None
    return Setup(
        models[row.model],
        1 if row.on_one_thread else n_threads,
        mmproj,
        speculation=row.speculation,
        values=row.values,
        n_clients=row.n_clients,
    )


def model_files(rows: Sequence[Row]) -> Mapping[Model, Path]:
    """Return the rows' models. Generated ones, of Qwen3.5-35B-A3B's architecture, are made if they are not there."""
    files: dict[Model, Path] = {"demo": paths.demo_model(), "smollm2": SMOLLM2.path}
    for name, size in _SIZES.items():
        if any(row.model == name for row in rows):
            files[name] = model = ROOT / ".work" / f"bench-{size}-q4_k_m.gguf"
            if not model.exists():
                print(f"generating {model.name} ...", flush=True)
                model.parent.mkdir(exist_ok=True)
                bench_model.make(model, size)
    return files


def main() -> None:
    options = parse_options(sys.argv[1:])
    server = find_server()
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # `timeout` and the like must leave no process behind
    models = model_files(options.rows)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        sides = Sides(server, Path(folder))
        try:
            for row in options.rows:
                setup = row_setup(row, models, options.n_threads)
                results.append(measure_row(row, sides, setup, options.rounds))
                print(results[-1], flush=True)
        finally:
            sides.close()
    seconds = time.monotonic() - began
    print(f"\n{options.n_threads} threads, {options.rounds} rounds, {seconds // 60:.0f} min {seconds % 60:.0f} s\n")
    print(table(results))
    n_missed = sum(not result.is_met and not result.row.is_limit for result in results)
    print(f"\n{len(results) - n_missed} of {len(results)} met, or a named limit")


if __name__ == "__main__":
    main()
