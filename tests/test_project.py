"""Rules about the repository's files as a whole."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from qwendesk import __version__
from tools.setup.project import PREBUILT_INDEX

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_LINES_OF_THE_PACKAGE = 400, 600
BINARY = {".gguf", ".png", ".whl", ".ico", ".icns"}
NOT_OURS = {"LICENSE"}
MADE_UP_PEOPLE = "tests/core/test_redaction.py:"
"""The tests of what takes such names out."""


def tracked_files() -> list[Path]:
    """Every file that git knows; what lies about beside them is not the project's."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def lines_of_text() -> Iterator[tuple[Path, int, str]]:
    """Every line of our own text files, with its number from 1."""
    for path in tracked_files():
        if path.suffix in BINARY or path.name in NOT_OURS:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield path, number, line


def lines_that_match(pattern: str) -> list[str]:
    """Those lines as "file:line: text"."""
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()}"
        for path, number, line in lines_of_text()
        if wanted.search(line)
    ]


def test_no_file_names_a_folder_of_one_persons_machine() -> None:
    # Written apart, so that this file does not match itself.
    people = "|".join(
        ["/ho" + "me/", "/ro" + "ot/", "/Us" + "ers/", r"\b[A-Z]:\\Us" + r"ers\\", r"(?<![\w.])/wo" + "rk/"]
    )

    found = [line for line in lines_that_match(people) if not line.startswith(MADE_UP_PEOPLE)]
    assert found == []


def test_no_file_holds_the_address_of_a_package_registry() -> None:
    hosts = [
        "pyp" + r"i\.org",
        "pythonhos" + r"ted\.org",
        "registry.npm" + r"js\.",
        "deb.deb" + r"ian\.",
        "archive.ubu" + r"ntu\.",
    ]

    assert lines_that_match("|".join(hosts)) == []


def test_the_wheel_index_is_named_once() -> None:
    places = lines_that_match(re.escape(PREBUILT_INDEX))

    assert [place.split(":")[0] for place in places] == ["tools/setup/project.py"]


def test_python_files_are_short() -> None:
    counted = {path: path.read_text(encoding="utf-8").splitlines() for path in tracked_files() if path.suffix == ".py"}

    too_long = [
        f"{path.relative_to(ROOT)}: {len(lines)} lines"
        for path, lines in counted.items()
        if len(lines) > (MOST_LINES_OF_THE_PACKAGE if path.is_relative_to(ROOT / "qwendesk") else MOST_LINES)
    ]

    assert too_long == []


# Modules with a builder of labels of their own, from before the kit (`widgets/kit.py`). This list only gets shorter.
OWN_BUILDERS = {
    "chat/view/composer/pdf_sheet.py",
    "mcp/view/server_dialog.py",
    "mcp/view/server_line.py",
    "meters/view/meter_bar.py",
    "models/view/download_row.py",
}
LABEL_BUILDER = re.compile(r"def _\w*label\w*\(.*-> (QLabel|WrappingLabel):", re.MULTILINE)


def test_labels_are_made_by_the_kit() -> None:
    package = ROOT / "qwendesk"
    sources = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}

    found = {name for name, text in sources.items() if LABEL_BUILDER.search(text)}

    assert found == OWN_BUILDERS, "use widgets/kit.py; a module that does so leaves the list"


def test_thin_lines_are_made_by_the_kit() -> None:
    assert {line.partition(":")[0] for line in lines_that_match(r'"kind", "rule' + '"')} == {"qwendesk/widgets/kit.py"}


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}

    assert [folder.relative_to(ROOT) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_archives_are_unpacked_by_every_python_that_the_setup_takes() -> None:
    # Debian 12's Python 3.11.2 has neither the argument nor `data_filter`; TarFile.extraction_filter does for all.
    assert lines_that_match(r"extractall\(.*filter" + "=") == []


def test_no_test_waits_for_a_fixed_time() -> None:
    """A helper may look again in short steps until something holds; a test says what it waits for."""
    sleeps = lines_that_match(r"\b(time|asyncio)\.sleep\((?!0\))")

    assert [line for line in sleeps if re.match(r"tests/.*test_\w+\.py:", line)] == []


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (path, number, target)
        for path, number, line in lines_of_text()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line)
    ]

    broken = [
        f"{path.relative_to(ROOT)}:{number}: {target}"
        for path, number, target in links
        if "://" not in target and not (path.parent / target).exists()
    ]

    assert broken == []


def project_table() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements() -> list[Requirement]:
    table = project_table()
    groups = [table["dependencies"], *table["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def is_for(requirement: Requirement, python: str) -> bool:
    """Return whether some system asks for it with this release of Python."""
    marker = requirement.marker
    return marker is None or "python_version" not in str(marker) or marker.evaluate({"python_version": python})


def pins(python: str) -> dict[str, str]:
    """What constraints.txt pins for a release of Python: normalised name to release."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    listed = [Requirement(line) for line in lines if line and not line.startswith("#")]
    fitting = [each for each in listed if is_for(each, python)]
    assert len({canonicalize_name(each.name) for each in fitting}) == len(fitting), "one release of each"
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in fitting}


@pytest.mark.parametrize(
    ("requirement", "python"),
    [(each, python) for each in requirements() for python in ("3.11", "3.12", "3.15") if is_for(each, python)],
    ids=str,
)
def test_every_requirement_is_pinned_within_its_range(requirement: Requirement, python: str) -> None:
    release = pins(python).get(canonicalize_name(requirement.name))

    assert release is not None
    assert requirement.specifier.contains(release)
    assert len(list(requirement.specifier)) in {1, 2}, "a range has a lower and an upper end"


def test_the_changelog_knows_this_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
