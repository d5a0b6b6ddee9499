"""The table of expected recommendations in docs/measurements.md is that of the tests."""

from pathlib import Path

from tools.guide_tables import expected_advice

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"


def test_the_page_has_the_rows_that_the_tests_expect() -> None:
    assert expected_advice() in PAGE.read_text(encoding="utf-8")
