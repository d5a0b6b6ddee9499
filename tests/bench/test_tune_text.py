"""What auto-tune says about what it tried."""

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import Speed, TriedOptions
from qwendesk.bench.tune_text import progress_text, result_sentence, tune_lines
from qwendesk.core.benchmarks import SpeedSamples
from qwendesk.core.options import LoadOptions

OPTIONS = LoadOptions(model="/models/m.gguf")


def trial(prompt: float, decode: float, **changes: object) -> TriedOptions:
    return TriedOptions(
        changes=changes, speed=Speed(SpeedSamples(tok_s=(prompt,) * 3), SpeedSamples(tok_s=(decode,) * 3))
    )


def state(*trials: TriedOptions, **values: object) -> TuneState:
    return TuneState(options=OPTIONS, trials=trials, **values)  # type: ignore[arg-type]


FOUND = trial(700, 47, n_ubatch=1024, n_threads=6)


def test_what_was_found_is_said_beside_the_users_own_speed() -> None:
    found = state(trial(500, 41), FOUND, FOUND, trial(500, 41))

    assert result_sentence(found) == (
        "Your settings: 41 tok/s, prompts 500 tok/s. Found: 47 tok/s, prompts 700 tok/s (n_ubatch 1024, 6 threads)."
    )


def test_what_was_measured_only_once_is_not_found() -> None:
    assert "fastest" in result_sentence(state(trial(500, 41), FOUND))


def test_a_run_without_time_says_so() -> None:
    assert "no time" in result_sentence(state(trial(500, 41)))
    assert "ended before" in result_sentence(state())
    assert result_sentence(TuneState()) == ""
    assert result_sentence(state(is_running=True)) == ""


def test_each_set_of_options_has_one_line_with_its_gain_or_why_there_is_none() -> None:
    refused = TriedOptions(changes={"n_ubatch": 4096}, why_not="It needs more memory than may be used.")

    lines = tune_lines(state(trial(500, 41), refused, FOUND, FOUND, trial(500, 20, n_threads=1), trial(500, 41)))

    assert [line.name for line in lines] == ["Your settings", "n_ubatch 4096", "n_ubatch 1024, 6 threads", "1 thread"]
    assert [line.remark for line in lines] == ["", "It needs more memory than may be used.", "+21%", "−43%"]
    assert [line.is_found for line in lines] == [False, False, True, False]
    assert (lines[0].prompt, lines[0].answer) == ("500", "41")


def test_a_gain_that_did_not_show_twice_is_not_called_one() -> None:
    (_own, once) = tune_lines(state(trial(500, 41), trial(700, 47, n_ubatch=1024)))

    assert once.remark == "+21%, within the scatter"


def test_progress_names_what_is_measured_and_the_time_left() -> None:
    assert progress_text(state(is_running=True)) == "Loading the model…"
