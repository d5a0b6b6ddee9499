"""What a person sees while the engine is built."""

import io

from tools.setup.progress import BuildProgress, elapsed

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
    progress = BuildProgress(out, terminal=terminal, clock=Clock())
    for line in lines:
        progress.feed(line)
    progress.finish("built")
    return out.getvalue()


def test_a_log_gets_the_stages_and_a_line_every_ten_percent() -> None:
    lines = shown([*HEAD, *steps(193), *TAIL]).splitlines()

    texts = [line.removeprefix("  engine: ").removesuffix(" (0 s)") for line in lines]
    assert texts[:3] == ["downloading the source", "getting the build tools", "looking at the compiler"]
    assert texts[3:-2] == [f"{percent}% compiled" for percent in range(0, 101, 10)]
    assert texts[-2:] == ["packing", "built"]


def test_a_terminal_gets_one_line_that_is_rewritten_every_percent() -> None:
    text = shown([*HEAD, *steps(193), *TAIL], terminal=True)

    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert sum("% compiled" in part for part in text.split("\r")) == 101


def test_a_shorter_text_hides_the_longer_one_before_it() -> None:
    parts = shown(HEAD, terminal=True).rstrip("\n").split("\r")

    widths = [len(part) for part in parts[1:]]
    assert widths[-1] >= len(parts[-2].rstrip())


def test_a_build_inside_the_build_does_not_move_the_percentage() -> None:
    outer = steps(400)
    inner = steps(6)

    mixed = shown([*outer[:200], *inner, *outer[200:]])

    assert mixed == shown(outer)


def test_few_steps_do_not_stop_at_a_percentage_that_was_passed_over() -> None:
    assert [line for line in shown(steps(3)).splitlines() if "compiled" in line] == [
        "  engine: 33% compiled (0 s)",
        "  engine: 66% compiled (0 s)",
        "  engine: 100% compiled (0 s)",
    ]


def test_the_time_it_takes_is_shown() -> None:
    out, clock = io.StringIO(), Clock()
    progress = BuildProgress(out, terminal=False, clock=clock)

    clock.now = 125.0
    progress.finish("built")

    assert out.getvalue() == "  engine: built (2 min 05 s)\n"
    assert elapsed(59.9) == "59 s"
