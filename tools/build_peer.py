"""Builds llama.cpp's own programs from the engine's source, to compare with: `python -m tools.build_peer`.

    python -m tools.build_peer                   llama-server and llama-perplexity for the CPU
    python -m tools.build_peer --cuda 90-real    llama-bench, and the engine's libraries, for NVIDIA cards

The source is the llama.cpp inside the release of llama-cpp-python that pyproject.toml pins. It is compiled with the
engine's own flags, without TLS and without the web page, and kept in .engine/peer. `python -m bench.peers` measures the
app beside the server, some tests of `make soak` compare with both programs for the CPU, and `python -m bench.gpu_check`
runs llama-bench. A build for cards needs no card; CMake's names of architectures say for which: 90-real is H100, H200.
"""

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup.backends import Backend, cmake_flags, compiler_environment
from tools.setup.cuda_build import CudaBuild, keep_source
from tools.setup.cuda_toolkit import fetch_toolkit, installed_toolkit
from tools.setup.pip import without_addresses
from tools.setup.progress import BuildProgress, ProgressLine
from tools.setup.project import ENGINES, WORK, SetupError, engine_version
from tools.setup.system_packages import needs, provide

_SUFFIX = ".exe" if os.name == "nt" else ""
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


@dataclass(frozen=True)
class Peer:
    """Programs that are built together."""

    name: str
    """Of their folder in .engine/peer."""
    programs: tuple[str, ...]
    backend: Backend = "cpu"
    libraries: tuple[str, ...] = ()
    """CMake's targets beside the programs and what these need."""
    cuda: CudaBuild | None = None

    @property
    def folder(self) -> Path:
        return ENGINES / "peer" / self.name

    def path(self, program: str) -> Path:
        return self.folder / f"{program}{_SUFFIX}"

    @property
    def is_built(self) -> bool:
        return all(self.path(program).is_file() for program in self.programs)


def cpu_peer() -> Peer:
    return Peer(engine_version(), ("llama-server", "llama-perplexity"))


def card_peer(build: CudaBuild) -> Peer:
    """Return llama-bench for these architectures. Its folder also works as an engine (LLAMA_CPP_LIB_PATH)."""
    name = f"cuda-{'_'.join(build.architectures)}-{engine_version()}"
    return Peer(name, ("llama-bench",), "cuda-avx2", libraries=("mtmd",), cuda=build)


def peer_server() -> Path:
    """Return the path of the llama-server that belongs to the pinned engine, whether or not it was built."""
    return cpu_peer().path("llama-server")


def peer_perplexity() -> Path:
    """Return the path of llama-perplexity, which is beside the server."""
    return cpu_peer().path("llama-perplexity")


def main(arguments: Sequence[str]) -> int:
    """Build the programs unless they are there. Return the exit code: 1, with a sentence, if that wasn't possible."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.build_peer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuda", metavar="ARCHITECTURE,...", help="for NVIDIA cards, such as 86-real for the RTX 30")
    asked = parser.parse_args(arguments)
    try:
        if asked.cuda:
            toolkit = installed_toolkit() or fetch_toolkit(Path(sys.executable))
            peer = card_peer(CudaBuild(toolkit, tuple(asked.cuda.split(","))))
        else:
            peer = cpu_peer()
        if peer.is_built:
            print(f"Already built: {peer.path(peer.programs[0])}")
            return 0
        build(peer)
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(f"Built: {peer.path(peer.programs[0])}")
    return 0


def build(peer: Peer) -> None:
    """Compile the programs into their folder.

    The source and the objects stay in .engine until the build is done, so that it resumes after an interruption. Raise
    SetupError with what to install, or with the last lines of the build.
    """
    if shutil.which("cmake") is None:
        raise SetupError(_NO_CMAKE)
    provide(needs(["build"], platform.system()), say=print)
    line = ProgressLine(peer.programs[0], sys.stdout, terminal=sys.stdout.isatty())
    progress = BuildProgress(line, terminal=sys.stdout.isatty())
    kept = peer.folder.with_name(f"{peer.name}.build")
    source = keep_source(kept, engine_version(), Path(sys.executable), progress.feed)
    objects = kept / "objects"
    variables = {**compiler_environment(peer.backend), **(peer.cuda.environment() if peer.cuda is not None else {})}
    commands = (configure_command(peer, source, objects), _compile_command(peer, objects))
    trouble = _run_all(commands, variables, WORK / "build-peer.log", progress.feed)
    line.finish("the build failed" if trouble else "built")
    if trouble:
        raise SetupError(f"{' and '.join(peer.programs)} did not build. {trouble}")
    _keep_programs(peer, objects)
    shutil.rmtree(kept, ignore_errors=True)


def configure_command(peer: Peer, source: Path, objects: Path) -> list[str]:
    """Return the command that configures the build in `objects`, with the engine's flags and the user's CMAKE_ARGS."""
    llama_cpp = source / "vendor" / "llama.cpp"
    if not (llama_cpp / "CMakeLists.txt").is_file():
        raise SetupError(f"The engine's source in {source} has no llama.cpp in it. Delete that folder and try again.")
    generator = ["-G", "Ninja"] if shutil.which("ninja") and os.name != "nt" else []
    # The source is no git checkout: without a name, CMake would take the commit of the project around it.
    name = f"-DLLAMA_BUILD_COMMIT=llama-cpp-python-{engine_version()}"
    # The quotes in them are for whoever splits CMAKE_ARGS, as the user's are.
    chosen = [*(peer.cuda.flags() if peer.cuda is not None else ()), os.environ.get("CMAKE_ARGS", "")]
    flags = [*cmake_flags(peer.backend), *_ONLY_THESE, name, *shlex.split(" ".join(chosen))]
    return ["cmake", "-S", str(llama_cpp), "-B", str(objects), *generator, *flags]


def _compile_command(peer: Peer, objects: Path) -> list[str]:
    jobs = str(os.cpu_count() or 1)
    targets = (*peer.programs, *peer.libraries)
    return ["cmake", "--build", str(objects), "--config", "Release", "--target", *targets, "--parallel", jobs]


def _keep_programs(peer: Peer, objects: Path) -> None:
    """Copy the programs and the libraries beside them to their folder, which appears whole or not at all."""
    names = [peer.path(program).name for program in peer.programs]
    built = next(objects.joinpath("bin").rglob(names[0]), objects / names[0])
    for name in names:
        if not built.with_name(name).is_file():
            raise SetupError(f"The build made no {name}. Delete {objects} and try again.")
    unfinished = peer.folder.with_name(f"{peer.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(built.parent, unfinished, symlinks=True)
    shutil.rmtree(peer.folder, ignore_errors=True)
    unfinished.rename(peer.folder)


def _run_all(
    commands: Sequence[Sequence[str]], variables: Mapping[str, str], log: Path, take: Callable[[str], None]
) -> str:
    """Run the commands in turn, with their output in `log`. Return "", or the log's place and last lines."""
    log.parent.mkdir(exist_ok=True)
    environment = {**os.environ, **variables}
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
    sys.exit(main(sys.argv[1:]))
