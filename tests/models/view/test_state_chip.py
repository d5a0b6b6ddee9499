"""The chip of the window and the first word of `qwendesk verify` are the same for every kind of finding."""

import pytest
from PySide6.QtWidgets import QApplication

from qwendesk.cli.verify import FileReport, report_line
from qwendesk.hub.finding_texts import FINDINGS, FindingCode
from qwendesk.hub.findings import Finding, FindingFix
from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.models.file_checker import ModelCheck
from qwendesk.models.model_state import chip_of, effective_findings, state_of
from qwendesk.models.view.model_row import StateChip
from tests.hub.test_finding_texts import sample_values

PATH = "/models/o/n-GGUF/m.gguf"


def words(check: ModelCheck, templates: tuple[str, ...] = ()) -> tuple[str, str]:
    """What the window and the command line say."""
    model = LibraryModel(
        files=(LibraryFile(PATH, 10, 1),), name="m", origin="ours", place="/models", writable=True
    )  # fmt: skip
    chip = StateChip("chip")
    chip.show_state(state_of(model, Library(models=(model,)), {PATH: check}, templates=templates))
    report = FileReport(PATH, 10, chip_of(check, templates), effective_findings(check, templates))
    return chip.text(), report_line(report).partition(":")[0]


@pytest.mark.parametrize(("code", "case"), FINDINGS)
def test_a_finding_has_one_word(app: QApplication, code: FindingCode, case: str) -> None:
    finding = Finding(code=code, case=case, values=sample_values(FINDINGS[code, case].message))

    window, command_line = words(ModelCheck(path=PATH, findings=(finding,)))

    assert window == command_line != ""


@pytest.mark.parametrize("check", [ModelCheck(path=PATH), ModelCheck(path=PATH, is_hashed=True, is_confirmed=True)])
def test_a_file_without_findings_has_one_word(app: QApplication, check: ModelCheck) -> None:
    window, command_line = words(check)

    assert window == command_line != ""


def test_a_replaced_template_is_no_longer_called_broken(app: QApplication) -> None:
    fix = FindingFix("use_template", "Qwen/M", "chat_template.jinja")
    check = ModelCheck(path=PATH, findings=(Finding(code="broken-tool-template", fix=fix),))

    assert words(check) == ("Broken template", "Broken template")
    assert words(check, templates=("Qwen/M",)) == ("Not verified", "Not verified")


def test_chip_shows_the_worst_finding(app: QApplication) -> None:
    truncated = Finding(code="truncated", case="header", values={"name": "m"})
    findings = (Finding(code="no-imatrix", values={"name": "m"}), truncated)

    assert words(ModelCheck(path=PATH, findings=findings)) == ("Corrupt", "Corrupt")
