"""What auto-tune says about what it tried."""

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import Speed, TriedOptions
from qwendesk.bench.tune_text import (
    changes_sentence,
    main_gain,
    other_sentence,
    progress_text,
    result_sentence,
    tune_lines,
)
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
        "Answers can be 15% faster: 35 words a second (47 tok/s) instead of 31 words a second (41 tok/s)."
    )
    assert "prompts read 1024 tokens at a time, 6 CPU threads" in changes_sentence(found)


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
        "prompts read 4096 tokens at a time",
        "prompts read 1024 tokens at a time, 6 CPU threads",
        "1 CPU thread",
    ]
    assert [line.remark for line in lines] == ["", "It needs more memory than may be used.", "chosen", "slower"]
    assert [line.is_found for line in lines] == [False, False, True, False]
    assert (lines[0].prompt, lines[0].answer) == ("500", "41")
    assert (lines[2].prompt, lines[2].answer) == ("700 (+40%)", "47 (+15%)")
    assert lines[2].code == "n_ubatch=1024 n_threads=6"


def test_a_gain_that_did_not_show_twice_is_not_called_one() -> None:
    (_own, once) = tune_lines(state(trial(500, 41), trial(700, 47, n_ubatch=1024)))

    assert once.remark == "faster, measured once"


def test_what_is_as_fast_as_the_best_says_so() -> None:
    """Twice as fast as before, it was called "+99%, within the scatter": of another one that was as fast."""
    best, alike = trial(1000, 82, n_threads=2), trial(1000, 81.5, n_ubatch=1024, n_threads=2)

    lines = tune_lines(state(trial(500, 41), best, best, alike, trial(500, 41.2, flash_attn="off"), trial(500, 41)))

    assert [line.remark for line in lines] == ["", "chosen", "about the same as 2", "about the same"]


def test_faster_prompts_are_not_called_faster_answers() -> None:
    found = trial(900, 41, n_ubatch=1024)

    sentence = result_sentence(state(trial(500, 41), found, found, trial(500, 41)))

    assert sentence == "Prompts can be read 80% faster: 900 tok/s instead of 500 tok/s."


def test_a_stopped_run_offers_the_best_so_far() -> None:
    stopped = state(trial(500, 41), FOUND, was_stopped=True, n_planned=9)

    assert result_sentence(stopped).startswith(
        "Stopped after 2 of 9 settings. This is the best so far. Answers can be 15% faster: "
    )


def test_a_stopped_run_that_found_nothing_says_how_far_it_came() -> None:
    slower = trial(500, 20, n_threads=1)

    nothing = result_sentence(state(trial(500, 41), slower, was_stopped=True, n_planned=9))
    assert nothing == "Stopped after 2 of 9 settings. Yours is the fastest so far: 31 words a second (41 tok/s)."
    mixed = result_sentence(state(trial(75, 19), trial(68, 20, n_threads=1), was_stopped=True, n_planned=9))
    assert mixed.startswith("Stopped after 2 of 9 settings. None is clearly faster than yours so far: ")
    assert result_sentence(state(trial(75, 19), was_stopped=True)).startswith("Stopped before other settings were")


def test_why_a_faster_answer_does_not_count_is_said() -> None:
    """It said "about the same" beside 21 tok/s against 19."""
    own = TriedOptions(
        changes={}, speed=Speed(SpeedSamples(tok_s=(65.0, 75.0, 85.0)), SpeedSamples(tok_s=(17.0, 19.0, 21.0)))
    )
    (_own, mixed) = tune_lines(state(own, trial(63, 21, n_threads=1)))
    (_own, lucky) = tune_lines(state(own, trial(75, 21, n_threads=1)))

    assert (mixed.answer, mixed.prompt, mixed.remark) == ("21 (+11%)", "63 (−16%)", "faster answers, slower prompts")
    assert lucky.remark == "not clear: runs differ by 11%"


def test_progress_names_what_is_measured_and_how_long_it_may_take() -> None:
    assert progress_text(state(is_running=True)) == "Loading the model…"
    machine = MachineMemory(devices=(), ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = best_plan(moe_35b(), None, machine, OPTIONS)

    assert progress_text(state(plan=plan, is_running=True)) == "Getting ready · 3 minutes at most"
    late = state(plan=plan, is_running=True, current={"n_threads": 4}, left_s=41.0)
    assert progress_text(late) == "4 CPU threads · 41 s at most"
    again = state(trial(500, 41), plan=plan, is_running=True, current={}, left_s=41.0)
    assert progress_text(again) == "Your settings, once more · 41 s at most"


def scattered(prompt: float, decode: float, share: float, **changes: object) -> TriedOptions:
    """Three runs, the slowest and the fastest of which differ from the middle one by a share."""
    offsets = (1 - share, 1.0, 1 + share)
    prompts, answers = (SpeedSamples(tok_s=tuple(mean * each for each in offsets)) for mean in (prompt, decode))
    return TriedOptions(changes=changes, speed=Speed(prompts, answers))


def test_headline_bars_and_table_say_the_same() -> None:
    """The headline said 94% faster, and the row of the same setting +48%, which was meant for a typical turn."""
    own, best = scattered(86, 17, 0.1), scattered(103, 33, 0.1, n_threads=1)
    drafts = scattered(110, 35, 0.1, n_threads=1, speculative="lookup")
    batches = scattered(64, 26, 0.4, n_threads=1, n_ubatch=128)
    found = state(own, best, best, drafts, batches, was_stopped=True, n_planned=4)

    lines, gain = tune_lines(found), main_gain(found)

    assert result_sentence(found) == (
        "Stopped after 4 settings, before the last check. This is the best so far. "
        "Answers can be 94% faster: 25 words a second (33 tok/s) instead of 13 words a second (17 tok/s)."
    )
    assert gain is not None
    assert (gain.before, gain.after) == ("13 words a second (17 tok/s)", "25 words a second (33 tok/s)")
    assert [line.answer for line in lines] == ["17", "33 (+94%)", "35 (+106%)", "26 (+53%)"]
    assert lines[1].remark == "chosen"
    assert lines[2].remark == "no clear difference from 2: runs differ by 20%"
    assert lines[3].remark.startswith("no clear difference from 2: runs differ by ")


def test_faster_answers_with_slower_prompts_are_offered() -> None:
    """It said that nothing was clearly faster, over a row with answers 56% faster and nothing to take."""
    own, one = scattered(94, 17.3, 0.15), scattered(83, 27, 0.15, n_threads=1)

    offered = state(own, one, one, own)

    assert offered.found is None
    assert result_sentence(offered) == (
        "Answers can be 56% faster: 20 words a second (27 tok/s) instead of 13 words a second (17 tok/s). "
        "But prompts are read 12% slower."
    )
    assert changes_sentence(offered).startswith("What changes: 1 CPU thread. ")
    assert tune_lines(offered)[1].remark == "faster answers"
    assert "clearly faster than yours" in result_sentence(state(own, one))
    assert tune_lines(state(own, one))[1].remark == "faster answers, slower prompts"


def test_faster_answers_than_those_of_what_was_found_are_a_second_offer() -> None:
    best, answers = trial(900, 41, n_ubatch=1024), trial(300, 60, n_threads=6)
    found = state(trial(500, 41), best, best, answers, answers, trial(500, 41))

    assert [offer.changes for offer in found.offers] == [{"n_ubatch": 1024}, {"n_threads": 6}]
    assert other_sentence(found) == ("For faster answers: 6 CPU threads. Against yours: answers +46%, prompts −40%.")
    assert other_sentence(state(trial(500, 41), best, best)) == ""


def test_what_is_used_is_not_called_possible_any_more() -> None:
    used = state(trial(500, 41), FOUND, FOUND, trial(500, 41), used=FOUND)

    assert result_sentence(used, is_in_use=True) == (
        "In use now: answers are 15% faster, 35 words a second (47 tok/s) instead of 31 words a second (41 tok/s)."
    )
    assert result_sentence(used).startswith("Answers can be 15% faster: ")
    assert changes_sentence(used) == (
        "What changed: prompts read 1024 tokens at a time, 6 CPU threads. Saved as the profile “Auto-tuned”."
    )
