"""What auto-tune says about what it tried."""

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import Speed, TriedOptions
from qwendesk.bench.tune_text import changes_sentence, progress_text, result_sentence, tune_lines
from qwendesk.core.benchmarks import SpeedSamples
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.hardware.planner import best_plan
from tests.gguf_files import moe_35b

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
        "15% faster is possible: 35 words a second (47 tok/s) instead of 31 words a second (41 tok/s)."
    )
    assert "batches of 1024, 6 threads" in changes_sentence(found)


def test_what_was_measured_only_once_is_not_found() -> None:
    assert result_sentence(state(trial(500, 41), FOUND)).startswith("No other setting is clearly faster than yours: ")
    assert "already the fastest" in result_sentence(state(trial(500, 41), trial(490, 40, n_threads=1)))


def test_a_run_without_time_says_so() -> None:
    assert "no time" in result_sentence(state(trial(500, 41)))
    assert "ended before" in result_sentence(state())
    assert result_sentence(TuneState()) == ""
    assert result_sentence(state(is_running=True)) == ""


def test_each_set_of_options_has_one_line_with_its_gain_or_why_there_is_none() -> None:
    refused = TriedOptions(changes={"n_ubatch": 4096}, why_not="It needs more memory than may be used.")

    lines = tune_lines(state(trial(500, 41), refused, FOUND, FOUND, trial(500, 20, n_threads=1), trial(500, 41)))

    assert [line.name for line in lines] == [
        "Your settings",
        "batches of 4096",
        "batches of 1024, 6 threads",
        "1 thread",
    ]
    assert [line.remark for line in lines] == ["", "It needs more memory than may be used.", "+21%", "−43%"]
    assert [line.is_found for line in lines] == [False, False, True, False]
    assert (lines[0].prompt, lines[0].answer) == ("500", "41")


def test_a_gain_that_did_not_show_twice_is_not_called_one() -> None:
    (_own, once) = tune_lines(state(trial(500, 41), trial(700, 47, n_ubatch=1024)))

    assert once.remark == "+21%, measured once"


def test_what_is_as_fast_as_the_best_says_so() -> None:
    """Twice as fast as before, it was called "+99%, within the scatter": of another one that was as fast."""
    best, alike = trial(1000, 82, n_threads=2), trial(1000, 81.5, n_ubatch=1024, n_threads=2)

    lines = tune_lines(state(trial(500, 41), best, best, alike, trial(500, 41.2, flash_attn="off"), trial(500, 41)))

    assert [line.remark for line in lines] == ["", "+100%", "about the same as 2", "about the same"]


def test_faster_prompts_are_not_called_faster_answers() -> None:
    found = trial(900, 41, n_ubatch=1024)

    sentence = result_sentence(state(trial(500, 41), found, found, trial(500, 41)))

    assert sentence == "Prompts can be read 80% faster: 900 tok/s instead of 500."


def test_a_stopped_run_offers_the_best_so_far() -> None:
    stopped = state(trial(500, 41), FOUND, was_stopped=True, n_planned=9)

    assert result_sentence(stopped).startswith(
        "Stopped after 2 of 9 settings. This is the best so far. 15% faster is possible: "
    )


def test_a_stopped_run_that_found_nothing_says_how_far_it_came() -> None:
    slower = trial(500, 20, n_threads=1)

    nothing = result_sentence(state(trial(500, 41), slower, was_stopped=True, n_planned=9))
    assert nothing == "Stopped after 2 of 9 settings. Yours is the fastest so far: 31 words a second (41 tok/s)."
    mixed = result_sentence(state(trial(75, 19), trial(63, 21, n_threads=1), was_stopped=True, n_planned=9))
    assert mixed.startswith("Stopped after 2 of 9 settings. None is clearly faster than yours so far: ")
    assert result_sentence(state(trial(75, 19), was_stopped=True)).startswith("Stopped before other settings were")


def test_why_a_faster_answer_does_not_count_is_said() -> None:
    """It said "about the same" beside 21 tok/s against 19."""
    own = TriedOptions(
        changes={}, speed=Speed(SpeedSamples(tok_s=(65.0, 75.0, 85.0)), SpeedSamples(tok_s=(17.0, 19.0, 21.0)))
    )
    (_own, mixed) = tune_lines(state(own, trial(63, 21, n_threads=1)))
    (_own, lucky) = tune_lines(state(own, trial(75, 21, n_threads=1)))

    assert mixed.remark == "answers +11%, prompts −16%"
    assert lucky.remark == "+4%, but runs differ by 9%"


def test_progress_names_what_is_measured_and_how_long_it_may_take() -> None:
    assert progress_text(state(is_running=True)) == "Loading the model…"
    machine = MachineMemory(devices=(), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = best_plan(moe_35b(), None, machine, OPTIONS)

    assert progress_text(state(plan=plan, is_running=True)) == "Getting ready · 3 minutes at most"
    late = state(plan=plan, is_running=True, current={"n_threads": 4}, left_s=41.0)
    assert progress_text(late) == "4 threads · 41 s at most"
