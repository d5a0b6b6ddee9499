"""One command of a made-up PC: `made_up_python.py COMMAND ARGUMENTS...` with what is there in pc.json (`Pythons`).

It runs by itself, so it imports nothing of ours.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, NoReturn


def main(folder: Path, name: str, arguments: list[str]) -> NoReturn:
    """Do what the command would, as far as run.cmd and the Makefile can tell."""
    pc = json.loads((folder / "pc.json").read_text(encoding="utf-8"))
    if name in pc["on_path"]:
        run(pc["on_path"][name], folder / name, arguments)
    if name == "python":
        print("Python was not found; run without arguments to install from the Microsoft Store.", file=sys.stderr)
        sys.exit(9009)
    if name == "choice":
        print(arguments[-1])
        sys.exit({"Y": 1, "N": 2}.get(pc["pressed"], 255))
    if name == "winget":
        install(pc, folder, arguments)
    if pc["launcher"] == "manager" and arguments == ["help"]:
        sys.exit()
    launch(pc, folder, arguments)


def launch(pc: dict[str, Any], folder: Path, arguments: list[str]) -> NoReturn:
    """Do what `py` or `pymanager` would."""
    if pc["launcher"] == "manager":
        may_install = os.environ.get("PYTHON_MANAGER_AUTOMATIC_INSTALL", "true") == "true"
        arguments = arguments[arguments[0] == "exec" :]
    else:
        may_install = bool(os.environ.get("PYLAUNCHER_ALLOW_INSTALL"))
    asked = arguments[0].startswith("-3")
    wanted = arguments[0].removeprefix("-") if asked else "3"
    fitting = [each for each in pc["launched"] if f"{each}.".startswith(f"{wanted}.")]
    if not fitting and may_install and pc["has_network"]:
        fitting = ["3.16.0" if wanted == "3" else f"{wanted}.1"]
        add(pc, folder, fitting[0])
    if fitting:
        run(max(fitting, key=numbers), folder / "py", arguments[asked:])
    print("No suitable Python runtime found", file=sys.stderr)
    sys.exit(103 if pc["launcher"] == "classic" else -1610612730)


def install(pc: dict[str, Any], folder: Path, arguments: list[str]) -> NoReturn:
    """Do what `winget` would: where python.org's installer puts a Python for one user, which is not on PATH yet."""
    if arguments[0] == "install":
        if pc["winget"] == "fails":
            sys.exit(0x8A15000F)
        assert arguments[arguments.index("--id") + 1] == "Python.Python.3.13"
        home = Path(os.environ["LOCALAPPDATA"], "Programs", "Python", "Python313")
        home.mkdir(parents=True)
        line = f'@"{sys.executable}" "{Path(__file__).resolve()}" py -3.13 %*\n'
        (home / "python.cmd").write_text(line, encoding="utf-8")
        add(pc, folder, "3.13.15")
    sys.exit()


def add(pc: dict[str, Any], folder: Path, version: str) -> None:
    """Write down that this version is on the PC now."""
    pc["launched"] += [version]
    (folder / "pc.json").write_text(json.dumps(pc), encoding="utf-8")
    with (folder / "installed.txt").open("a", encoding="utf-8") as file:
        file.write(f"{version}\n")


def run(version: str, command: Path, arguments: list[str]) -> NoReturn:
    """Do what a Python of this version would: `-m tools.setup`, or `-c` for its own path."""
    if arguments[0] == "-c":
        sys.exit(print(command))
    sys.version_info = (*numbers(version), "final", 0)  # type: ignore[assignment]
    sys.argv[1:] = arguments[2:]
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    sys.exit()


def numbers(version: str) -> list[int]:
    """Return the parts of a version."""
    return [int(number) for number in version.split(".")]


if __name__ == "__main__":
    main(Path(__file__).parent, sys.argv[1], sys.argv[2:])
