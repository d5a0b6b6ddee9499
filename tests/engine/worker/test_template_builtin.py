"""A model without a template gets that of its family, and what would begin the next turn ends its answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core.messages import text_message
from qwendesk.engine.worker.template_builtin import usable_formats
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user, worker_process
from tests.templateless_model import write_templateless

CHAT = (
    text_message("system", "Be brief."),
    user("Hello"),
    text_message("assistant", "Good day."),
    user("What is VRAM spill?"),
)
PROMPTS = {
    "gemma": "<start_of_turn>user\nBe brief.\n\nHello<end_of_turn>\n<start_of_turn>model\nGood day.<end_of_turn>\n"
    "<start_of_turn>user\nWhat is VRAM spill?<end_of_turn>\n<start_of_turn>model\n",
    "llama3": "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nGood day.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nWhat is VRAM spill?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "mistral": "[INST] Be brief.\n\nHello[/INST] Good day.</s>[INST] What is VRAM spill?[/INST]",
    "chatml": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
    "<|im_start|>assistant\nGood day.<|im_end|>\n<|im_start|>user\nWhat is VRAM spill?<|im_end|>\n"
    "<|im_start|>assistant\n",
    "plain": "Be brief.\n\nUser: Hello\nAssistant: Good day.\nUser: What is VRAM spill?\nAssistant:",
    "none": "Be brief.\n\nHelloGood day.\n\nWhat is VRAM spill?",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as worker:
        yield worker


def load(worker: WorkerProcess, folder: Path, family: str, **written: str):
    path = write_templateless(folder / "tiny.gguf", family, **written)
    return worker.load(demo_options(model=str(path), mmproj=""))


@pytest.mark.parametrize("family", ["gemma", "llama3", "mistral", "chatml", "plain"])
def test_the_familys_marks_are_around_the_turns(worker: WorkerProcess, tmp_path: Path, family: str) -> None:
    template = load(worker, tmp_path, family).template
    assert (template.source, template.is_base, template.tools, template.call_dialect) == ("builtin", True, False, "")
    assert template.formats == tuple(dict.fromkeys((family, "plain", "none")))
    for name in template.formats:
        options = greedy(max_tokens=6, cache_prompt=False, chat_format="auto" if name == family else name)
        answer = worker.ask(CHAT, options, n_logprobs=0)
        raw = worker.ask((), options, prompt=PROMPTS[name], n_logprobs=0)
        assert answer.stats.prompt_tokens == raw.stats.prompt_tokens
        assert answer.text.strip() == raw.text.strip()


def test_a_format_that_does_not_suit_the_model_is_not_used(worker: WorkerProcess, tmp_path: Path) -> None:
    load(worker, tmp_path, "gemma")
    own, other = (
        worker.ask(CHAT, greedy(max_tokens=4, chat_format=name)).stats.prompt_tokens for name in ("auto", "llama3")
    )
    assert own == other


def test_a_model_with_a_template_of_its_own_keeps_it(worker: WorkerProcess) -> None:
    assert worker.load(demo_options()).template.formats == ()
    own, other = (
        worker.ask(CHAT, greedy(max_tokens=4, chat_format=name)).stats.prompt_tokens for name in ("auto", "plain")
    )
    assert own == other


def test_the_model_does_not_write_the_users_part(worker: WorkerProcess, tmp_path: Path) -> None:
    load(worker, tmp_path, "plain")
    for written, shown in ((" Four.\\nUser: And 3+3?", "Four."), ("User: What?", ""), (" A User and a dog", None)):
        answer = worker.ask(CHAT, greedy(grammar=f'root ::= "{written}"'))
        assert (answer.text, answer.stop_reason) == (written.strip() if shown is None else shown, "eos")


def test_a_stop_text_of_the_user_still_counts(worker: WorkerProcess, tmp_path: Path) -> None:
    load(worker, tmp_path, "plain")
    answer = worker.ask(CHAT, greedy(grammar='root ::= "One two three"', stop=("two",)))
    assert (answer.text, answer.stop_reason) == ("One ", "stop_string")


def test_a_token_that_begins_a_turn_ends_the_answer(worker: WorkerProcess, tmp_path: Path) -> None:
    load(worker, tmp_path, "gemma")
    answer = worker.ask(CHAT, greedy(logit_bias=("2017=1000",)))
    assert (answer.text, answer.stop_reason) == ("", "eos")


def test_a_model_that_was_trained_to_chat_is_not_called_a_base_model(worker: WorkerProcess, tmp_path: Path) -> None:
    template = load(worker, tmp_path, "llama3", name="Tiny 3M Instruct").template
    assert template.notice == "This file has no chat template, so QwenDesk uses a built-in one."
    assert not template.is_base


def test_nothing_suits_every_model_but_plain_text() -> None:
    assert usable_formats({"<start_of_turn>", "<|im_start|>"}) == ("plain", "none")
    assert usable_formats({"<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>"})[:2] == ("gemma", "chatml")
