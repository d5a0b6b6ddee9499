"""The set-up from start to end: look at the machine, get the engine, fill .venv; nothing at all if nothing changed."""

import argparse
import dataclasses
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.setup import backends, engine, environment, system_packages
from tools.setup.project import ROOT, SetupError, engine_version, venv_python


def main(arguments: Sequence[str]) -> int:
    """Makes the environment ready. Returns the exit code: 0 ready, 1 with a sentence of what must be done first."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.setup", description="Makes QwenDesk's environment in .venv."
    )
    parser.add_argument("--for", dest="purpose", choices=["run", "test"], default="run")
    parser.add_argument("--engine", default="auto", help=f"one of {', '.join(backends.WANTED)}")
    parser.add_argument("--prebuilt", action="store_true", help="take a ready engine instead of building one")
    options = parser.parse_args(arguments)
    try:
        prepare(options.purpose, options.engine.lower() or "auto", prebuilt=options.prebuilt)
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def prepare(purpose: str, wanted: str, *, prebuilt: bool) -> None:
    """Brings everything up to date. Under a tenth of a second if it is. Raises SetupError."""
    old = environment.read_note()
    now = environment.Note(
        root=str(ROOT),
        project=environment.project_hash(),
        wanted_engine=wanted,
        prebuilt=prebuilt,
        tools=backends.tool_signature(),
        wheel=environment.wheel_mark(Path(old.wheel.split("|")[0])) if old else "",
        # What is tested is also run.
        purposes=tuple(sorted({"run", purpose, *(old.purposes if old else ())})),
    )
    if now == old and venv_python().exists():
        return
    system_packages.provide(system_packages.needs(now.purposes, platform.system()), say=_say)
    if old is None or dataclasses.replace(now, purposes=old.purposes) != old or not venv_python().exists():
        now = _installed(now, old)
    environment.write_note(now)


def _installed(now: environment.Note, old: environment.Note | None) -> environment.Note:
    """Gets the engine and fills the environment. Returns `now` with the wheel that was installed."""
    choice = backends.choose(now.wanted_engine, backends.look_at_machine(prebuilt=now.prebuilt))
    _say(f"Engine: {choice.backend} ({choice.reason})")
    environment.forget_note()
    fresh = environment.create(moved=old is not None and old.root != now.root, say=_say)
    wheel = _wheel(choice.backend, prebuilt=now.prebuilt)
    mark = environment.wheel_mark(wheel)
    environment.install(wheel, new_engine=fresh or old is None or old.wheel != mark, say=_say)
    return dataclasses.replace(now, wheel=mark)


def _wheel(backend: backends.Backend, *, prebuilt: bool) -> Path:
    version = engine_version()
    kept = engine.kept_wheel(backend, version)
    if kept is not None:
        return kept
    if prebuilt:
        return engine.fetch_prebuilt(backend, version, venv_python(), _say)
    purposes = ["build", "vulkan"] if backend.startswith("vulkan") else ["build"]
    system_packages.provide(system_packages.needs(purposes, platform.system()), say=_say)
    _say(f"Building the engine {version} for {backend}. This is done once: about 4 minutes for a CPU, more for a GPU.")
    return engine.build(backend, version, venv_python())


def _say(text: str) -> None:
    print(text, flush=True)
