"""A draft head in a file of its own that can't be used: the model is loaded without it."""

from pathlib import Path

import pytest

from qwendesk.engine.worker.loader import load
from tests.draft_head_model import write_demo_head, write_demo_without_head
from tests.engine.worker.process import demo_options, greedy, user
from tests.engine.worker.test_drafts import LOG, QUESTION, ask


def test_a_draft_head_of_another_model_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = write_demo_head(tmp_path / "mtp-other.gguf", tokens_moved=True)
    LOG.install()
    model = write_demo_without_head(tmp_path / "demo.gguf")
    options = demo_options(model=str(model), speculative="mtp", draft_model=str(other))
    made = load(options, LOG, lambda _stage, _fraction: None, lambda: False)
    assert made.model.head is None
    assert made.report.n_draft_max == 0
    assert "mtp-other.gguf is for another model" in caplog.text
    answer = ask(made, (user(QUESTION),), greedy(max_tokens=8))
    assert answer.reasoning or answer.text
    made.close()


def test_a_draft_head_that_is_no_model_file_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mtp.gguf").write_bytes(b"GGUF" + bytes(100))
    LOG.install()
    model = write_demo_without_head(tmp_path / "demo.gguf")
    options = demo_options(model=str(model), speculative="mtp", draft_model=str(tmp_path / "mtp.gguf"))
    made = load(options, LOG, lambda _stage, _fraction: None, lambda: False)
    assert made.model.head is None
    assert "could not be loaded" in caplog.text
    made.close()
