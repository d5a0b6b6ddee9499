"""What is said of another engine beside the one in use."""

from qwendesk.engines.engine_comparison import EngineComparison, EngineFindings
from qwendesk.engines.self_test import Check


def findings(
    *failed: str, answers: tuple[str, ...] = ("5",), answer: float = 100.0, prompt: float = 0.0
) -> EngineFindings:
    checks = tuple(
        Check(name, name not in failed, 0.1, "Bad." if name in failed else "") for name in ("load", "picture")
    )
    return EngineFindings(checks=checks, answers=answers, answer_tok_s=answer, prompt_tok_s=prompt)


def test_what_the_engine_in_use_can_must_not_be_lost() -> None:
    assert EngineComparison(findings(), findings("picture")).problem == "It failed the test “picture”: Bad."
    assert EngineComparison(findings("picture"), findings("picture")).problem == "", "it is no worse"
    assert EngineComparison(findings("picture"), findings()).problem == ""
    assert EngineComparison(EngineFindings(checks=()), findings("load")).problem, "there is no engine to compare with"


def test_answers_and_speeds_are_told_beside_the_old_ones() -> None:
    said = EngineComparison(findings(), findings(answer=130.0)).sentences
    assert said == (
        "It passes 2 of 2 tests.",
        "Its answers are those of the engine in use.",
        "Answers: 130 tok/s instead of 100 (1.30 times as fast).",
        "The speeds are those of the small demo model.",
    )
    said = EngineComparison(findings(prompt=10.0), findings(answers=("five",), answer=97.0, prompt=20.0)).sentences
    assert "worded differently" in said[1]
    assert said[2].endswith("(equally fast).")
    assert said[3].startswith("Prompts: 20")
