"""The whole suite by the Windows Python, one package of tests after the other, and the table of the results."""

import time
import xml.etree.ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.check import TWO_AT_A_TIME
from tools.setup.progress import elapsed
from tools.windows import chroot
from tools.windows.folders import FFMPEG, REPORTS, TREE, for_windows, inside

TEST_LIMIT_S = 15 * 60
"""A test that takes longer ends its process on Windows, so the limit is for one that hangs, not for a slow one."""
FONTS = r"WINEQT_QPA_FONTDIR=Z:\usr\share\fonts\truetype\dejavu"
"""Wine's folder of fonts is empty: those of the Debian folder stand in for it (tests/conftest.py).

Wine hides variables that begin with QT_ from Windows programs, and takes WINE off the front of this one.
"""
PROGRAMS = f"WINEPATH={for_windows(FFMPEG)}"
"""A folder that Wine puts on PATH."""
PACKAGE_LIMIT_S = 90 * 60
"""A package of tests that takes longer hangs, and is stopped."""

_NOTHING_TO_RUN = 5
"""pytest's exit code if it collected no test, as in tests/gpu without a GPU engine."""


@dataclass(frozen=True)
class Result:
    """What one run of pytest said."""

    name: str
    passed: int
    failed: int
    """Failures, and errors in set-up or tear-down."""
    skipped: int
    seconds: float
    note: str = ""
    """Why there are no complete counts."""


def packages(tests: Path) -> dict[str, list[str]]:
    """Return what pytest is asked for, by the name of the row: each folder with tests, and the files beside them."""
    folders = sorted(path for path in tests.iterdir() if path.is_dir() and any(path.rglob("test_*.py")))
    found = {folder.name: [f"{tests.name}/{folder.name}"] for folder in folders}
    files = [f"{tests.name}/{file.name}" for file in sorted(tests.glob("test_*.py"))]
    return {**found, "(beside them)": files} if files else found


def run(arguments: Sequence[str]) -> int:
    """Run what `arguments` name, else every package, and print the table. Returns 0 if nothing failed."""
    chosen = {"chosen": list(arguments)} if arguments else packages(TREE / "tests")
    results = []
    for name, what in chosen.items():
        print(f"\n== {name}", flush=True)
        results.append(_run_one(name, what))
    print("\n" + table(results), flush=True)
    return 1 if any(each.failed or each.note for each in results) else 0


def _run_one(name: str, what: Sequence[str]) -> Result:
    REPORTS.mkdir(parents=True, exist_ok=True)
    plain = "".join(letter for letter in name if letter.isalnum())
    report = REPORTS / f"{plain}.xml"
    report.unlink(missing_ok=True)
    start = time.monotonic()
    line = chroot.command(pytest_script([*what, f"--junitxml={for_windows(report)}"]), inside(TREE), [FONTS, PROGRAMS])
    limited = ["timeout", "--signal=KILL", str(PACKAGE_LIMIT_S), *line]
    code = chroot.run_to_log(limited, REPORTS / f"{plain}.log", lambda text: print(text, end="", flush=True))
    note = f"pytest ended with code {code}" if code not in {0, 1, _NOTHING_TO_RUN} else ""
    return read_report(name, report, time.monotonic() - start, note)


def pytest_script(arguments: Sequence[str]) -> str:
    """Return the bash script that runs pytest by the Windows Python, as `make test` runs it. Later options win."""
    # The limit of pyproject.toml that ends the process would come first.
    limits = ["--timeout", str(TEST_LIMIT_S), "-o", f"faulthandler_timeout={2 * TEST_LIMIT_S}"]
    return chroot.by_windows_python(["-m", "pytest", "-p", "no:cacheprovider", *TWO_AT_A_TIME, *limits, *arguments])


def read_report(name: str, report: Path, seconds: float, note: str = "") -> Result:
    """Return the counts of a JUnit report. Without one, pytest did not come to its end."""
    if not report.is_file():
        return Result(name, 0, 0, 0, seconds, note or "pytest wrote no report")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in xml.etree.ElementTree.parse(report).iter("testsuite"):
        for key in counts:
            counts[key] += int(suite.get(key, "0"))
    failed = counts["failures"] + counts["errors"]
    return Result(name, counts["tests"] - failed - counts["skipped"], failed, counts["skipped"], seconds, note)


def table(results: Iterable[Result]) -> str:
    """Return the results as a Markdown table, with the sums in its last row."""
    rows = list(results)
    if len(rows) > 1:
        rows.append(_sum(rows))
    lines = ["| tests | passed | failed | skipped | time |", "|---|--:|--:|--:|--:|"]
    for each in rows:
        name = f"{each.name} ({each.note})" if each.note else each.name
        lines.append(f"| {name} | {each.passed} | {each.failed} | {each.skipped} | {elapsed(each.seconds)} |")
    return "\n".join(lines)


def _sum(results: Sequence[Result]) -> Result:
    return Result(
        "all",
        passed=sum(each.passed for each in results),
        failed=sum(each.failed for each in results),
        skipped=sum(each.skipped for each in results),
        seconds=sum(each.seconds for each in results),
    )
