"""What is shown while the environment is set up."""

import io

import pytest

from tools.setup.duration import first_setup_text
from tools.setup.progress import BuildProgress, LibraryProgress, ProgressLine, elapsed

HEAD = [
    "Collecting llama-cpp-python==0.3.36\n",
    "  Downloading llama_cpp_python-0.3.36.tar.gz (76.6 MB)\n",
    "  Installing build dependencies: started\n",
    "  *** Configuring CMake...\n",
]
TAIL = ["  *** Installing project into wheel...\n", "Successfully built llama-cpp-python\n"]


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def steps(total: int) -> list[str]:
    """Ninja's lines, with a compiler's warning after each."""
    compiled = (f"  [{n}/{total}] /usr/bin/g++ -O3 file{n}.cpp\n" for n in range(1, total + 1))
    return [line for step in compiled for line in (step, "  warning: unused parameter [1/1] in a message\n")]


def shown(lines: list[str], *, terminal: bool = False) -> str:
    out = io.StringIO()
    step = ProgressLine("engine", out, terminal=terminal, clock=Clock())
    progress = BuildProgress(step, terminal=terminal)
    for line in lines:
        progress.feed(line)
    step.finish("built")
    return out.getvalue()


def test_log_has_the_stages_and_a_line_every_ten_percent() -> None:
    lines = shown([*HEAD, *steps(193), *TAIL]).splitlines()

    texts = [line.removeprefix("  engine: ").removesuffix(" (0 s)") for line in lines]
    assert texts[:3] == ["downloading", "getting the build tools", "checking the compiler"]
    assert texts[3:-2] == [f"{percent}% compiled" for percent in range(0, 101, 10)]
    assert texts[-2:] == ["packing", "built"]


def test_terminal_has_one_line_that_is_rewritten_every_percent() -> None:
    text = shown([*HEAD, *steps(193), *TAIL], terminal=True)

    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert sum("% compiled" in part for part in text.split("\r")) == 101


def test_nested_build_does_not_change_the_percentage() -> None:
    outer = steps(400)
    inner = steps(6)

    mixed = shown([*outer[:200], *inner, *outer[200:]])

    assert mixed == shown(outer)


def test_duration_is_shown() -> None:
    out, clock = io.StringIO(), Clock()
    step = ProgressLine("engine", out, terminal=False, clock=clock)

    clock.now = 125.0
    step.finish("built")

    assert out.getvalue() == "  engine: built (2 min 05 s)\n"
    assert elapsed(59.9) == "59 s"


PIP = [
    "Looking in indexes: https://index.example/simple\n",
    "Obtaining file:///somewhere/qwendesk\n",
    "Collecting msgspec<0.23,>=0.20 (from qwendesk==0.1.0)\n",
    "  Downloading msgspec-0.22.0-cp311-cp311-manylinux_2_17_x86_64.whl.metadata (6.9 kB)\n",
    "Downloading msgspec-0.22.0-cp311-cp311-manylinux_2_17_x86_64.whl (219 kB)\n",
    "Downloading https://index.example/PySide6_Essentials-6.11.3-cp310-abi3-manylinux_2_28_x86_64.whl (95.2 MB)\n",
    "Using cached jaraco.classes-3.4.0-py3-none-any.whl (6.8 kB)\n",
    "Building wheels for collected packages: qwendesk\n",
    "Installing collected packages: PySide6_Essentials, msgspec, jaraco.classes, qwendesk\n",
    "Successfully installed msgspec-0.22.0\n",
]


def libraries(lines: list[str], *, terminal: bool) -> str:
    out = io.StringIO()
    step = ProgressLine("libraries", out, terminal=terminal, clock=Clock())
    progress = LibraryProgress(step, 53, terminal=terminal)
    for line in lines:
        progress.feed(line)
    return out.getvalue()


def test_libraries_are_counted_and_no_address_is_shown() -> None:
    parts = [part.strip() for part in libraries(PIP, terminal=True).split("\r") if part]
    assert parts == [
        "libraries: checking 1 of about 53 (0 s)",
        "libraries: downloading 1 of about 53: msgspec, 219 kB (0 s)",
        "libraries: downloading 2 of about 53: PySide6_Essentials, 95.2 MB (0 s)",
        "libraries: downloading 3 of about 53: jaraco.classes, 6.8 kB (0 s)",
        "libraries: unpacking 4 packages (0 s)",
    ]


@pytest.mark.parametrize(
    ("backend", "source", "cores", "minutes"),
    [("cpu", "kept", 2, 2), ("cuda", "prebuilt", 2, 2), ("cpu", "build", 2, 11), ("vulkan-avx2", "build", 8, 10)],
)
def test_first_sentence_says_how_many_minutes_it_takes(backend: str, source: str, cores: int, minutes: int) -> None:
    text = first_setup_text(backend, source, cores)
    assert f"takes about {minutes} minutes" in text
    assert ("Compiling the engine" in text) == (source == "build")
