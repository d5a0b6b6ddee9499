"""Builds llama-server and llama-perplexity from the engine's own source: `python -m tools.build_peer`.

The source is the llama.cpp inside the release of llama-cpp-python that pyproject.toml pins. It is compiled for the CPU
with the engine's own flags, without TLS and without the web page, and kept in .engine/peer. `python -m bench.peers`
measures the app beside the server, and some tests of `make soak` compare with both.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.setup.backends import cmake_flags, compiler_environment
from tools.setup.cuda_build import keep_source
from tools.setup.pip import without_addresses
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINES, WORK, SetupError, engine_version
from tools.setup.system_packages import needs, provide

_SUFFIX = ".exe" if os.name == "nt" else ""
_TARGETS = ("llama-server", "llama-perplexity")
PROGRAM = f"{_TARGETS[0]}{_SUFFIX}"
_ONLY_THESE = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",  # as in the engine's wheel
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)
_NO_CMAKE = (
    "CMake is missing. Install it (Debian and Ubuntu: sudo apt-get install cmake ninja-build; elsewhere: "
    "https://cmake.org/download), then try again."
)
_LAST_LINES = 25


def peer_server() -> Path:
    """Return the path of the llama-server that belongs to the pinned engine, whether or not it was built."""
    return ENGINES / "peer" / engine_version() / PROGRAM


def peer_perplexity() -> Path:
    """Return the path of llama-perplexity, which is beside the server."""
    return peer_server().with_name(f"{_TARGETS[1]}{_SUFFIX}")


def main() -> int:
    """Build both programs unless they are there. Return the exit code: 1, with a sentence, if that wasn't possible."""
    server = peer_server()
    if server.is_file() and peer_perplexity().is_file():
        print(f"Already built: {server}")
        return 0
    try:
        print(f"Built: {build(server)}")
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def build(server: Path) -> Path:
    """Compile both programs into the folder of `server` and return `server`.

    The source and the objects stay in .engine until the build is done, so that it resumes after an interruption. Raise
    SetupError with what to install, or with the last lines of the build.
    """
    if shutil.which("cmake") is None:
        raise SetupError(_NO_CMAKE)
    provide(needs(["build"], platform.system()), say=print)
    version = server.parent.name
    line = ProgressLine(_TARGETS[0], sys.stdout, terminal=sys.stdout.isatty())
    progress = BuildProgress(line, terminal=sys.stdout.isatty())
    kept = server.parent.with_name(f"{version}.build")
    source = keep_source(kept, version, Path(sys.executable), progress.feed)
    objects = kept / "objects"
    commands = (configure_command(source, objects, version), _compile_command(objects))
    trouble = _run_all(commands, WORK / "build-peer.log", progress.feed)
    line.finish("the build failed" if trouble else "built")
    if trouble:
        raise SetupError(f"llama-server and llama-perplexity did not build. {trouble}")
    _keep_programs(objects, server)
    shutil.rmtree(kept, ignore_errors=True)
    return server


def configure_command(source: Path, objects: Path, version: str) -> list[str]:
    """Return the command that configures the build in `objects`, with the engine's flags and the user's CMAKE_ARGS."""
    llama_cpp = source / "vendor" / "llama.cpp"
    if not (llama_cpp / "CMakeLists.txt").is_file():
        raise SetupError(f"The engine's source in {source} has no llama.cpp in it. Delete that folder and try again.")
    generator = ["-G", "Ninja"] if shutil.which("ninja") and os.name != "nt" else []
    # The source is no git checkout: without a name, CMake would take the commit of the project around it.
    name = f"-DLLAMA_BUILD_COMMIT=llama-cpp-python-{version}"
    own = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    flags = [*cmake_flags("cpu"), *_ONLY_THESE, name, *own]
    return ["cmake", "-S", str(llama_cpp), "-B", str(objects), *generator, *flags]


def _compile_command(objects: Path) -> list[str]:
    jobs = str(os.cpu_count() or 1)
    return ["cmake", "--build", str(objects), "--config", "Release", "--target", *_TARGETS, "--parallel", jobs]


def _keep_programs(objects: Path, server: Path) -> None:
    """Copy the programs and the libraries beside them to the folder of `server`, which appears whole or not at all."""
    built = next(objects.joinpath("bin").rglob(PROGRAM), objects / PROGRAM)
    for program in (built, built.with_name(peer_perplexity().name)):
        if not program.is_file():
            raise SetupError(f"The build made no {program.name}. Delete {objects} and try again.")
    unfinished = server.parent.with_name(f"{server.parent.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(built.parent, unfinished, symlinks=True)
    shutil.rmtree(server.parent, ignore_errors=True)
    unfinished.rename(server.parent)


def _run_all(commands: Sequence[Sequence[str]], log: Path, take: Callable[[str], None]) -> str:
    """Run the commands in turn, with their output in `log`. Return "", or the log's place and last lines."""
    log.parent.mkdir(exist_ok=True)
    environment = {**os.environ, **compiler_environment("cpu")}
    with log.open("w", encoding="utf-8") as file:
        for command in commands:
            last = deque[str](maxlen=_LAST_LINES)

            def keep(text: str, last: deque[str] = last) -> None:
                file.write(text)
                last.append(text)
                take(text)

            if _run(command, environment, keep):
                return f"The end of {log}:\n{without_addresses(''.join(last))}"
    return ""


def _run(command: Sequence[str], environment: Mapping[str, str], take: Callable[[str], None]) -> int:
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            take(line)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
