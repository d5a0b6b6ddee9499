"""The set-up from start to end: look at the machine, get the engine, fill .venv; nothing at all if nothing changed."""

import argparse
import dataclasses
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.setup import backends, cuda_toolkit, engine, environment, system_packages
from tools.setup.cuda_build import CudaBuild, architectures_here
from tools.setup.duration import EngineSource, cuda_follows_text, cuda_offer_text, first_setup_text
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
    environment.write_note(_installed(now, old))


def _installed(now: environment.Note, old: environment.Note | None) -> environment.Note:
    """Gets the engine and fills the environment. Returns `now` with the wheel that was installed."""
    machine = backends.look_at_machine(prebuilt=now.prebuilt)
    choice = backends.choose(now.wanted_engine, machine)
    if choice.may_build_cuda and engine.kept_wheel("cuda", engine_version()) is not None:
        choice = backends.Choice("cuda", "it was built before")
    kept = engine.kept_wheel(choice.backend, engine_version())
    source: EngineSource = "kept" if kept is not None else "prebuilt" if now.prebuilt else "build"
    with_tests = "test" in now.purposes
    if old is None:
        fetches_cuda = choice.backend == "cuda" and machine.toolkit is None and not cuda_toolkit.fetched_toolkit()
        _say(first_setup_text(choice.backend, source, os.cpu_count() or 1, fetches_cuda=fetches_cuda))
    elif with_tests and "test" not in old.purposes:
        _say("Adding what the tests need. This is done once and takes about a minute.")
    system_packages.provide(system_packages.needs(now.purposes, platform.system()), say=_say)
    environment.forget_note()
    _say(f"Step 1 of 3: Python {platform.python_version()} environment in .venv")
    fresh = environment.create(moved=old is not None and old.root != now.root)
    _say(f"Step 2 of 3: engine for {choice.backend} ({choice.reason})")
    wheel = kept or _wheel_for(choice.backend, source, machine, is_chosen_here=now.wanted_engine in ("auto", "cuda"))
    mark = environment.wheel_mark(wheel)
    _say("Step 3 of 3: libraries")
    environment.install(wheel, new_engine=fresh or old is None or old.wheel != mark, with_tests=with_tests)
    if choice.may_build_cuda:
        _say(cuda_offer_text(machine.cards[0].name, os.cpu_count() or 1))
    if choice.cuda_follows:
        _say(cuda_follows_text(machine.cards[0].name))
    return dataclasses.replace(now, wheel=mark)


def _wheel_for(
    backend: backends.Backend, source: EngineSource, machine: backends.Machine, *, is_chosen_here: bool
) -> Path:
    """A new wheel. A ready engine that only `auto` asked for and that can't be had gives way to the CPU's."""
    try:
        return _new_wheel(backend, source, machine)
    except SetupError as error:
        if source != "prebuilt" or backend == "cpu" or not is_chosen_here:
            raise
        _say(
            f"{error}\n\nQwenDesk takes the CPU's engine for now, which is slower. To try {backend} again later, enter "
            f"set ENGINE={backend} and start run.cmd from there."
        )
    return engine.kept_wheel("cpu", engine_version()) or _new_wheel("cpu", source, machine)


def _new_wheel(backend: backends.Backend, source: EngineSource, machine: backends.Machine) -> Path:
    if source == "prebuilt":
        return engine.fetch_prebuilt(backend, engine_version(), venv_python())
    purposes = ["build", "vulkan"] if backend.startswith("vulkan") else ["build"]
    system_packages.provide(system_packages.needs(purposes, platform.system()), say=_say)
    cuda = _cuda_build(machine) if backend == "cuda" else None
    return engine.build(backend, engine_version(), venv_python(), cuda)


def _cuda_build(machine: backends.Machine) -> CudaBuild:
    """How to build for this PC's cards: with the toolkit on PATH, else with the one from NVIDIA's packages."""
    toolkit = cuda_toolkit.installed_toolkit()
    if toolkit is not None:
        return CudaBuild(toolkit, is_for_this_pc=True)
    own_arguments = os.environ.get("CMAKE_ARGS", "")
    architectures = architectures_here(machine.cards, cuda_toolkit.wheels_release()[0], own_arguments)
    return CudaBuild(cuda_toolkit.fetch_toolkit(venv_python()), architectures, is_for_this_pc=True)


def _say(text: str) -> None:
    print(text, flush=True)
