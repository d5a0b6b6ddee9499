"""Makes the demo model and measures it: about an hour and a half on two otherwise idle cores.

python -m tools.demo_model            train, export and measure, in .work/demo-model; goes on where it stopped
python -m tools.demo_model --from MODEL MMPROJ      the same, but train these files further: about an hour; with
    --missed FILE, what `measure` wrote there, those wordings are asked more often; --steps 1500 --rate 5e-4 refines
python -m tools.demo_model --install  put what was made there into resources/demo and tests/data
python -m tools.demo_model --measure MODEL MMPROJ   measure other files, those of resources/demo for instance
"""

import argparse
import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from qwendesk.core.paths import demo_mmproj, demo_model
from tools.demo_model import evaluation
from tools.demo_model.sample import write_sample

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".work/demo-model"
SAMPLE = ROOT / "tests/data/demo_sample.json"
MADE_FROM, TOKENIZER, CHECKPOINT = WORK / "made-from.txt", WORK / "tokenizer.json", WORK / "checkpoint.pt"
MISSED = WORK / "missed-wordings.txt"
MODEL, MMPROJ = WORK / demo_model().name, WORK / demo_mmproj().name

say = partial(print, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.demo_model", description="Makes the demo model.")
    parser.add_argument("--install", action="store_true", help="put the files into resources/demo and tests/data")
    parser.add_argument("--measure", nargs=2, type=Path, metavar=("MODEL", "MMPROJ"), help="only measure these files")
    parser.add_argument(
        "--from", dest="begin_with", nargs=2, type=Path, metavar=("MODEL", "MMPROJ"), help="train these files further"
    )
    parser.add_argument("--steps", type=int, default=3000, help="how many, with --from")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="the highest learning rate, with --from")
    parser.add_argument("--missed", type=Path, metavar="FILE", help="wordings to ask more often, one on each line")
    given = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if given.install:
        install()
    elif given.measure:
        measure(*given.measure)
    else:
        make(given.begin_with, given.steps, given.rate, given.missed)
        measure(MODEL, MMPROJ)


def make(begin_with: Sequence[Path] | None, steps: int, rate: float, missed: Path | None) -> None:
    """Tokenizer, weights, files. Raises ImportError where the demo-model group is not installed, SystemExit when what
    was begun was begun with other topics or another trainer."""
    from tools.demo_model.exporting import export  # noqa: PLC0415
    from tools.demo_model.starting_files import read_tokenizer  # noqa: PLC0415
    from tools.demo_model.tokens import train_tokenizer  # noqa: PLC0415
    from tools.demo_model.training import train  # noqa: PLC0415

    files = (begin_with[0], begin_with[1]) if begin_with else None
    if not TOKENIZER.exists():
        if files:
            read_tokenizer(files[0], TOKENIZER)
        else:
            train_tokenizer(TOKENIZER)
        MADE_FROM.write_text(trainer_digest(), encoding="utf-8")
    _refuse_another_trainer()
    wordings = missed.read_text(encoding="utf-8").splitlines() if missed else []
    train(TOKENIZER, CHECKPOINT, begin_with=files, n_further=steps, further_rate=rate, missed=wordings, say=say)
    export(CHECKPOINT, TOKENIZER, MODEL, MMPROJ)


def trainer_digest() -> str:
    """Of everything in this folder that decides what comes out."""
    paths = [path for path in Path(__file__).parent.rglob("*") if path.suffix in (".py", ".toml", ".jinja")]
    paths = [path for path in paths if path.name not in ("__main__.py", "evaluation.py", "sample.py")]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _refuse_another_trainer() -> None:
    if not MADE_FROM.exists() or MADE_FROM.read_text(encoding="utf-8") != trainer_digest():
        raise SystemExit(
            f"{WORK.relative_to(ROOT)} was begun with other topics or another trainer. Delete it to begin anew."
        )


def measure(model: Path, mmproj: Path) -> None:
    """Prints the data sheet's table, and leaves the misses in misses.txt."""
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(evaluation.measure(model, mmproj, Path(folder), evaluation.all_questions()))
    say("\n| what | right |\n|---|---|")
    for name, row in measured.rows.items():
        say(f"| {name} | {row} |")
    MISSED.write_text("".join(f"{wording}\n" for wording in dict.fromkeys(measured.missed_wordings)), encoding="utf-8")
    misses = WORK / "misses.txt"
    misses.write_text("\n".join(measured.misses) + "\n", encoding="utf-8")
    say(f"\n{len(measured.misses)} misses are in {misses.relative_to(ROOT)}.")


def install() -> None:
    """Raises OSError where nothing was made yet, SystemExit where it was made with other topics."""
    _refuse_another_trainer()
    shutil.copyfile(MODEL, demo_model())
    shutil.copyfile(MMPROJ, demo_mmproj())
    write_sample(SAMPLE)


if __name__ == "__main__":
    main()
