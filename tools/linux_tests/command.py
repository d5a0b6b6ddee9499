"""The commands: `test` runs the whole suite on Debian 13, `gpu` checks the Vulkan engine, `soak` its operators."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

from tools.linux_tests import engine, environment
from tools.linux_tests.place import SYSTEM_PACKAGES, Place, find_place
from tools.linux_tests.runs import run_gpu_soak, run_gpu_tests, run_suite
from tools.setup import system_packages
from tools.setup.project import ROOT, SetupError
from tools.windows import stages, tree
from tools.windows.command import alone, debian_stage
from tools.windows.engine import source_hash
from tools.windows.folders import SHARED, STAMPS, TREE
from tools.windows.machine import Machine, look_at_machine, refusal
from tools.windows.stages import Stage

RUNS: dict[str, Callable[[Place, Sequence[str]], int]] = {
    "test": run_suite,
    "gpu": run_gpu_tests,
    "soak": run_gpu_soak,
}


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0 if everything passed, else what the tests returned, or 1 with a sentence."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.linux_tests", description=__doc__)
    parser.add_argument("command", choices=[*RUNS], help="arguments after it go to pytest")
    options, rest = parser.parse_known_args(arguments)
    try:
        with alone():
            place = find_place()
            prepare(place, options.command)
            return RUNS[options.command](place, rest)
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def prepare(place: Place, command: str) -> None:
    """Run the stages that are not up to date, then bring the copy of the checkout up to date. Raises SetupError."""
    machine = look_at_machine(ROOT)
    listed = all_stages(place, command, machine)
    waiting = stages.outdated(listed, STAMPS)
    if not place.is_here:
        trouble = refusal(machine, is_set_up=not any(stage.name == "debian" for stage in waiting))
        if trouble:
            raise SetupError(trouble)
    if waiting:
        where = "on this machine" if place.is_here else "in a folder with Debian 13"
        _say(
            f"Setting up Python and an engine {where}, in .windows. The first time this takes about ten minutes on two "
            "cores and 4 GB. You can stop with Ctrl+C and start again later."
        )
        stages.run(listed, STAMPS, _say)
    n_changed = tree.update(ROOT, TREE)
    environment.install_app(place, TREE)
    _say(f"Copied {n_changed} changed files of this checkout.")


def all_stages(place: Place, command: str, machine: Machine) -> list[Stage]:
    """Return the stages that a command needs, in the order in which they run."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    home = place.path(SHARED)
    if place.is_here:
        packages = [system_packages.Need("program", name, package) for name, package in SYSTEM_PACKAGES.items()]
        packages += system_packages.needs(["run", "test", "build", "vulkan"], "Linux")
        first = Stage(
            "here",
            "Packages of this system",
            tuple(need.debian_package for need in packages),
            partial(system_packages.provide, packages, say=_say),
        )
    else:
        first = debian_stage(machine.mirror)
    listed = [
        first,
        Stage("linux-source", "Source of the engine", (source_hash(),), engine.unpack),
        Stage(
            "linux-libraries",
            "Libraries for Linux",
            (home, *environment.pinned_for_linux(constraints)),
            partial(environment.install_libraries, place, constraints),
            (first.name,),
        ),
    ]
    if command == "test":
        listed.append(
            Stage(
                "linux-cpu",
                "Engine for the CPU, compiled here",
                (engine.build_script(place, engine.CPU),),
                partial(_build_for_cpu, place),
                (first.name, "linux-source", "linux-libraries"),
            )
        )
    else:
        listed.append(
            Stage(
                "linux-vulkan",
                "Engine for Vulkan, compiled here",
                (engine.build_script(place, engine.VULKAN), engine.glslc_script()),
                partial(_build_for_vulkan, place),
                (first.name, "linux-source"),
            )
        )
    if command == "soak":
        listed.append(
            Stage(
                "linux-operators",
                "llama.cpp's tests of operators, compiled here",
                (),
                partial(engine.build_operator_tests, place),
                ("linux-vulkan",),
            )
        )
    return listed


def _build_for_cpu(place: Place) -> None:
    engine.build(place, engine.CPU)
    environment.install_engine(engine.CPU, environment.site_packages())


def _build_for_vulkan(place: Place) -> None:
    engine.build(place, engine.VULKAN)
    environment.install_engine(engine.VULKAN, environment.VULKAN_PACKAGE)


def _say(text: str) -> None:
    print(text, flush=True)
