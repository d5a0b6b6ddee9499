"""On a PC with an NVIDIA card: plans, memory and speed against what is really allocated and measured.

    python -m bench.gpu_check [PART ...] [--folder FOLDER] [--llama-bench PATH]

The parts, each of which prints tables for docs/measurements.md:

    plans    plans for several models and placements, against what the engine allocates and nvidia-smi reads
    sizes    loads with 8 to 32 GB free, as on smaller cards: another process holds the rest of the card
    speeds   generation with more and more experts in RAM, against the estimate and llama-bench on the same file
    spin     generation with threads that spin for a shorter or longer time before they sleep
    turns    time to the first token of a long chat's first and second turn
    vision   a picture encoded on the GPU and on the CPU, and the memory that the encoder takes
    failure  memory that another program takes between plan and load: the failure's words, and the retry
    unload   memory of the card before a load, while loaded and after the unload

Models are generated in FOLDER (35B takes 20 GB; a folder in RAM such as /dev/shm is fastest). Without a card it says so
and ends.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bench.gpu_check.card_sizes import check_card_sizes
from bench.gpu_check.failed_load import check_failed_load
from bench.gpu_check.models import CheckFailed, Models
from bench.gpu_check.plans import check_plans
from bench.gpu_check.speeds import check_speeds
from bench.gpu_check.spin import check_spin
from bench.gpu_check.turns import check_turns
from bench.gpu_check.unloading import check_unloading
from bench.gpu_check.vision import check_vision
from qwendesk.bench.memory_watch import used_on_cards

_PARTS = {
    "plans": check_plans,
    "sizes": check_card_sizes,
    "speeds": check_speeds,
    "spin": check_spin,
    "turns": check_turns,
    "vision": check_vision,
    "failure": check_failed_load,
    "unload": check_unloading,
}


def main() -> int:
    """Returns 1 if a part failed or a limit was exceeded."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], metavar="PART", help="all parts if none is named")
    parser.add_argument("--folder", type=Path, help="where models are generated and kept; a temporary one if missing")
    parser.add_argument("--size", default="35b", help="model of the parts but `plans` (default 35b)")
    parser.add_argument("--llama-bench", type=Path, help="the program to compare with, built from the same llama.cpp")
    asked = parser.parse_args()
    if not used_on_cards():
        print("No NVIDIA card was found here (nvidia-smi is missing or lists none): nothing was checked.")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        models = Models(asked.folder or Path(temporary), asked.size, asked.llama_bench)
        return max([_run(part, models) for part in asked.parts or _PARTS])


def _run(part: str, models: Models) -> int:
    print(f"\n### {part}\n", flush=True)
    started = time.monotonic()
    try:
        code = asyncio.run(_PARTS[part](models))
    except (OSError, CheckFailed) as error:
        print(f"{part}: {error}")
        code = 1
    print(f"\n({part}: {time.monotonic() - started:.0f} s)", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
