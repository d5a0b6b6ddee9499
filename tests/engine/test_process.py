"""What a worker is started with."""

import pytest

from qwendesk.engine.process import worker_environment


def test_threads_of_the_engine_spin_briefly_by_default(monkeypatch: pytest.MonkeyPatch):
    assert worker_environment({})["GOMP_SPINCOUNT"] == "1000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert worker_environment({})["GOMP_SPINCOUNT"] == "7"


def test_added_variables_override_defaults() -> None:
    assert worker_environment({"LLAMA_CPP_LIB_PATH": "/engines/cpu"})["LLAMA_CPP_LIB_PATH"] == "/engines/cpu"
