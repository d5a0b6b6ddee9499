"""Stages of the set-up: each runs once, and again when what it is made from has changed."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.setup.progress import elapsed


@dataclass(frozen=True)
class Stage:
    """One part of the environment."""

    name: str
    """Also the name of its stamp."""
    title: str
    made_from: tuple[str, ...]
    """What decides the result: releases, hashes, the text of scripts."""
    make: Callable[[], None]
    after: tuple[str, ...] = ()
    """Stages whose result this one uses: it runs again after any of them."""


@dataclass(frozen=True)
class Stamp:
    """Record of a stage that is complete."""

    key: str
    seconds: float


def keys(stages: Sequence[Stage]) -> dict[str, str]:
    """Return a hash for each stage of what it and the stages before it are made from, by the stage's name."""
    found: dict[str, str] = {}
    for stage in stages:
        parts = [stage.name, *stage.made_from, *(found[name] for name in stage.after)]
        found[stage.name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return found


def outdated(stages: Sequence[Stage], folder: Path) -> list[Stage]:
    """Return the stages that have to run, in order. `folder` has the stamps."""
    wanted = keys(stages)
    return [
        stage for stage in stages if (stamp := read_stamp(folder, stage)) is None or stamp.key != wanted[stage.name]
    ]


def run(stages: Sequence[Stage], folder: Path, say: Callable[[str], None]) -> None:
    """Run the stages that have to, and say for each what it does and how long it took.

    A stage that fails leaves no stamp, so the next set-up starts there again.
    """
    wanted = keys(stages)
    waiting = {stage.name for stage in outdated(stages, folder)}
    folder.mkdir(parents=True, exist_ok=True)
    for number, stage in enumerate(stages, 1):
        where = f"Step {number} of {len(stages)}: {stage.title}"
        if stage.name not in waiting:
            stamp = read_stamp(folder, stage)
            took = f", made in {elapsed(stamp.seconds)}" if stamp else ""
            say(f"{where} (ready{took})")
            continue
        say(where)
        _file(folder, stage).unlink(missing_ok=True)
        start = time.monotonic()
        stage.make()
        seconds = time.monotonic() - start
        _file(folder, stage).write_text(json.dumps(asdict(Stamp(wanted[stage.name], seconds))), encoding="utf-8")
        say(f"  done in {elapsed(seconds)}")


def read_stamp(folder: Path, stage: Stage) -> Stamp | None:
    """Return the record of the last time this stage was completed; None if there is none."""
    try:
        values = json.loads(_file(folder, stage).read_text(encoding="utf-8"))
        return Stamp(str(values["key"]), float(values["seconds"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _file(folder: Path, stage: Stage) -> Path:
    return folder / f"{stage.name}.json"
