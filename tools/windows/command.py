"""The commands: `setup` makes the Windows environment ready, `test` runs the suite in it, `bundle` makes the installer
and `bundle-test` tries it."""

import argparse
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tools.setup.project import ROOT, SetupError
from tools.windows import bundle, bundle_test, chroot, debian, engine, ffmpeg, python, stages, suite, tree
from tools.windows.folders import LOCK, PYTHON, SHARED, STAMPS, TREE, WINDOWS, inside
from tools.windows.machine import Machine, look_at_machine, refusal
from tools.windows.stages import Stage


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0 if the environment is ready or the tests pass, else 1 with a sentence or a table."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.windows", description="Windows on Linux, for the tests.")
    parser.add_argument("command", choices=["setup", "test", "bundle", "bundle-test"])
    options, rest = parser.parse_known_args(arguments)
    try:
        with alone():
            prepare(with_bundle=options.command.startswith("bundle"))
            match options.command:
                case "test":
                    return suite.run(rest)
                case "bundle":
                    bundle.make(_say)
                case "bundle-test":
                    return bundle_test.run(rest)
            return 0
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def prepare(*, with_bundle: bool = False) -> None:
    """Run the stages that are not up to date, then bring the copy of the checkout up to date. Raises SetupError."""
    machine = look_at_machine(ROOT)
    listed = all_stages(machine) + (bundle.stages(machine, _say) if with_bundle else [])
    waiting = stages.outdated(listed, STAMPS)
    trouble = refusal(machine, is_set_up=not waiting)
    if trouble:
        raise SetupError(trouble)
    if waiting:
        _say(
            "Setting up Windows Python under Wine in .windows. The first time this takes about half an hour on two "
            f"cores and 5 GB{', and the engines of the bundle about ten minutes more' if with_bundle else ''}. "
            "You can stop with Ctrl+C and start again later."
        )
        stages.run(listed, STAMPS, _say)
    _install_app()


def all_stages(machine: Machine) -> list[Stage]:
    """Return the stages in the order in which they run."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    stub, checks = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("icu_stub.c", "check.py"))
    cmake = [file.read_text(encoding="utf-8") for file in engine.CMAKE_FILES]
    return [
        debian_stage(machine.mirror),
        Stage("prefix", "Wine's drive C:", (), debian.make_prefix, ("debian",)),
        Stage("python", "Python for Windows", (python.PACKED_SHA256,), python.make),
        Stage(
            "libraries",
            "Libraries for Windows",
            (*python.pinned_for_windows(constraints), stub),
            partial(python.install_libraries, constraints),
            ("debian", "python"),
        ),
        Stage(
            "engine",
            "Engine for Windows, compiled here",
            (engine.source_hash(), engine.build_script(), *cmake),
            engine.build,
            ("debian",),
        ),
        Stage("ffmpeg", "FFmpeg for Windows", (ffmpeg.PACKED_SHA256,), ffmpeg.unpack),
        Stage(
            "check",
            "All of it together",
            (checks,),
            _check,
            ("prefix", "libraries", "engine"),
        ),
    ]


def debian_stage(mirror: str) -> Stage:
    """Return the stage that makes the Debian folder. The tests on Linux use the same folder."""
    return Stage(
        "debian",
        "Debian 13 with Wine and a compiler for Windows",
        (debian.SUITE, *debian.PACKAGES),
        partial(debian.make, mirror, _say),
    )


def _check() -> None:
    engine.install()
    _install_app()
    line = shlex.join(["wine", inside(PYTHON / "python.exe"), "-m", "tools.windows.check"])
    chroot.run(
        "Trying the libraries",
        chroot.SCREEN + f"{line} </dev/null 2>&1 | cat",
        "check",
        folder=inside(TREE),
        take=_show,
    )


def _install_app() -> None:
    python.install_app(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])
    _say(f"Copied {tree.update(ROOT, TREE)} changed files of this checkout.")


def _show(line: str) -> None:
    _say(f"  {line.rstrip()}")


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of .windows: two Wine servers must not share a drive C:. Raises SetupError if it is held.

    Without fcntl, on Windows, nothing is locked: `prepare` refuses such a machine with the reason.
    """
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:
        yield
        return
    WINDOWS.mkdir(exist_ok=True)
    SHARED.mkdir(exist_ok=True)
    with LOCK.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError("Another make that uses .windows is running in this checkout.") from error
        yield


def _say(text: str) -> None:
    print(text, flush=True)
