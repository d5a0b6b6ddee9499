"""The next step when programs wait or a model doesn't fit: only what the cards of this PC can do is offered."""

import pytest

from qwendesk.commands.gpu_split import Card
from qwendesk.commands.outgrown import next_step
from qwendesk.commands.serving import Serving
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB

LOAD, ANSWER = LoadOptions(model="/models/Qwen3.5-35B-A3B-Q4_K_M.gguf", n_ctx=32_768), GenerationOptions()
SLOW = 3.94e9
"""PCIe 3.0 x4, in bytes per second."""


def cards(count, *, gib=24, link=None, pairs=(), maker="nvidia"):
    linked = {a: (b,) for pair in pairs for a, b in (pair, pair[::-1])}
    return tuple(Card(gib * GIB, maker=maker, link_bytes_s=link, nvlinks=linked.get(each, ())) for each in range(count))


def serving(on, base="Qwen/Qwen3.5-35B-A3B"):
    return Serving(base_repo=base, cards=on, kv_bytes=GIB, n_heads=16, n_kv_heads=2)


def waiting(on, **how):
    return next_step(LOAD, ANSWER, serving(on, **how), n_waiting=3)


@pytest.mark.parametrize("n_waiting", [0, 1])
def test_nothing_is_said_while_it_suffices(n_waiting):
    assert next_step(LOAD, ANSWER, serving(cards(2)), n_waiting=n_waiting) is None


def test_cards_in_slow_slots_divide_whole_layers():
    step = waiting(cards(2, link=SLOW))
    assert step.sentence.startswith("3 programs wait")
    assert "pipeline parallel" in step.sentence
    assert "--pipeline-parallel-size 2" in step.command
    assert "--tensor-parallel-size" not in step.command


def test_two_pairs_of_nvlinked_cards_are_two_by_two():
    step = waiting(cards(4, link=SLOW, pairs=((0, 1), (2, 3))))
    assert "tensor parallel 2" in step.sentence
    assert "--tensor-parallel-size 2 --pipeline-parallel-size 2" in step.command


def test_a_pair_with_nvlink_shares_every_layer():
    step = waiting(cards(2, link=SLOW, pairs=((0, 1),)))
    assert "All 2 cards share every layer" in step.sentence
    assert "--tensor-parallel-size 2" in step.command


def test_the_command_has_what_agents_need_and_a_format_that_fits():
    command = waiting(cards(2, link=SLOW)).command
    for words in (
        "vllm serve Qwen/Qwen3.5-35B-A3B-FP8",
        "--enable-prefix-caching",
        "--reasoning-parser qwen3",
        "--tool-call-parser qwen3_coder",
    ):
        assert words in command
    large = waiting(cards(2, gib=48, link=SLOW)).command
    assert "vllm serve Qwen/Qwen3.5-35B-A3B " in large, "the unquantised model fits, so it is the one"


@pytest.mark.parametrize(
    ("on", "says"),
    [
        (cards(1, gib=8), "No format that vLLM loads fits"),
        ((), "video memory for Qwen/Qwen3.5-35B-A3B-GPTQ-Int4"),
        (cards(1, gib=128, maker="apple"), "A PC that has it"),
        (cards(2, maker=""), "A PC that has it"),
    ],
)
def test_no_command_is_given_that_would_not_run(on, says):
    step = waiting(on)
    assert not step.command
    assert says in step.sentence
    assert "Other engines" in step.sentence


def test_a_model_whose_original_is_unknown_gets_no_made_up_size():
    step = waiting(cards(2), base="")
    assert not step.command
    assert "GB" not in step.sentence


def test_a_model_that_does_not_fit_has_smaller_ones_first():
    step = next_step(LOAD, ANSWER, serving(cards(1, gib=8)), fits=False)
    assert step.cause == "memory"
    assert "smaller" in step.sentence
    assert "Other engines" in step.sentence


def test_a_large_file_may_still_fit_in_another_format():
    step = next_step(LOAD, ANSWER, serving(cards(2)), fits=False)
    assert "FP8 fits the cards" in step.sentence
    assert step.command
