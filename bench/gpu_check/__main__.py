"""On a PC with an NVIDIA card: plans, memory and speed against what is really allocated and measured.

    python -m bench.gpu_check [PART ...] [--budget SECONDS] [--folder FOLDER] [--llama-bench PATH]

The parts, in the order in which they run, each a table for docs/measurements.md:

    equality tests that the card answers as the CPU does: logits, answers that are interrupted
    model    the generated model of the parts below
    spin     generation with threads that spin for a shorter or longer time before they sleep
    speeds   generation with more and more experts in RAM, against the estimate and llama-bench on the same file
    plans    plans for several models and placements, against what the engine allocates and nvidia-smi reads
    unload   memory of the card before a load, while loaded and after the unload
    turns    time to the first token of a long chat's first and second turn
    sizes    loads with 8 to 32 GB free, as on smaller cards: another process holds the rest of the card
    failure  memory that another program takes between plan and load: the failure's words, and the retry
    vision   a picture encoded on the GPU and on the CPU, and the memory that the encoder takes
    engine   tests of the engine on the card: drafts, turns, damaged files

What matters most comes first, each step has a time limit, and what the budget has no time for is listed as open. The
35B model takes 20 GB in FOLDER (one in RAM such as /dev/shm is fastest). Without a card it says so and ends.
CONTRIBUTING.md has how to get an engine onto a PC with a card.
"""

import argparse
import asyncio
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from bench.gpu_check.card_sizes import SIZES
from bench.gpu_check.equality import ENGINE, EQUALITY
from bench.gpu_check.failed_load import FAILURE
from bench.gpu_check.models import Models
from bench.gpu_check.plans import PLANS
from bench.gpu_check.speeds import SPEEDS
from bench.gpu_check.spin import SPIN
from bench.gpu_check.steps import Found, Part, Run, Step
from bench.gpu_check.turns import TURNS
from bench.gpu_check.unloading import UNLOADING
from bench.gpu_check.vision import VISION
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.units import GIB, MIB
from tools.setup.nvidia import nvidia_cards
from tools.setup.project import engine_version

_BUDGET_S = 420.0


async def _make_model(models: Models) -> Found:
    began = time.monotonic()
    path = await models.make_random()
    return Found(((path.name, f"{path.stat().st_size / GIB:.1f} GiB", f"{time.monotonic() - began:.0f} s"),))


MODEL = Part("model", ("file", "size", "written in"), (Step("write it", 120, _make_model),))
PARTS = (EQUALITY, MODEL, SPIN, SPEEDS, PLANS, UNLOADING, TURNS, SIZES, FAILURE, VISION, ENGINE)


def chosen_parts(names: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts with these names, all without one, in their order, with the model that they need."""
    chosen = [part for part in PARTS if not names or part.name in names]
    needs_model = any(part.needs_model for part in chosen)
    return tuple(part for part in PARTS if part in chosen or (part is MODEL and needs_model))


def main() -> int:
    """Returns 1 if a step failed or a limit was exceeded."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*names, []], metavar="PART", help="all parts if none is named")
    parser.add_argument("--budget", type=float, default=_BUDGET_S, help="seconds for all (default 420)")
    parser.add_argument("--folder", type=Path, help="where models are generated and kept; a temporary one if missing")
    parser.add_argument("--size", default="35b", help="model of the parts but `plans` (default 35b)")
    parser.add_argument("--llama-bench", type=Path, default=_beside_engine(), help="the program to compare with")
    asked = parser.parse_args()
    used = used_on_cards()
    if not used:
        print("No NVIDIA card was found here (nvidia-smi is missing or lists none): nothing was checked.")
        return 0
    cards = ", ".join(f"{card.name} (driver {card.driver})" for card in nvidia_cards())
    print(
        f"{datetime.date.today()}, {cards}, {sum(used) / MIB:.0f} MiB of it in use before, "
        f"{psutil.cpu_count(logical=False)} cores, engine {engine_version()}"
    )
    return asyncio.run(_run(chosen_parts(asked.parts), asked))


async def _run(parts: Sequence[Part], asked: argparse.Namespace) -> int:
    run = Run(asked.budget, say=lambda text: print(text, flush=True))
    with tempfile.TemporaryDirectory() as temporary:
        models = Models(asked.folder or Path(temporary), asked.size, asked.llama_bench)
        for part in parts:
            await run.take(part, models)
    return run.end()


def _beside_engine() -> Path | None:
    """Return the llama-bench beside the engine's libraries, which `tools.build_peer --cuda` puts there."""
    program = Path(os.environ.get("LLAMA_CPP_LIB_PATH", "")) / "llama-bench"
    return program if program.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
