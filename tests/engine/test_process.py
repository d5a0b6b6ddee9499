"""What a worker is started with."""

import pytest

from qwendesk.engine.process import worker_environment


def test_the_engine_s_threads_sleep_soon_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch):
    assert worker_environment({})["GOMP_SPINCOUNT"] == "1000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert worker_environment({})["GOMP_SPINCOUNT"] == "7"


def test_what_the_caller_adds_wins() -> None:
    assert worker_environment({"LLAMA_CPP_LIB_PATH": "/engines/cpu"})["LLAMA_CPP_LIB_PATH"] == "/engines/cpu"
