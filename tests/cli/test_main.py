"""The entry as people start it: a process of its own, on the real engine and the demo model."""

import json
import signal
import subprocess
import sys

import psutil
import pytest

from qwendesk import __version__
from qwendesk.core.paths import demo_model

ENDLESS = ["--set", "logit_bias=2016=-inf;2018=-inf"]
"""The demo's two end tokens are forbidden, so its answer only ends when the context is full."""


def qwendesk(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "qwendesk", *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )


def worker_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    """Return its child. On Windows that may be the last of a chain, since python.exe of a virtual environment starts
    another one, and a process without a window has a conhost.exe.
    """
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if child.name() != "conhost.exe"][-1]


def test_version_and_help():
    assert qwendesk("--version").stdout.strip() == f"QwenDesk {__version__}"
    help_ = qwendesk("--help").stdout
    for words in ("ask", "doctor", "--theme"):
        assert words in help_


def test_ask_answers_two_turns_and_a_picture(shape_picture):
    picture = shape_picture("blue", "square")
    done = qwendesk("ask", "--json", "--image", str(picture), "What is in this picture?", "What is 2 + 3?")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["turns"]
    assert first["answer"] == "A blue square on a white background."
    assert "blue square" in first["reasoning"]
    assert first["image_tokens"] == 16
    assert second["answer"] == "2 + 3 = 5"
    assert second["reused_tokens"] > 0
    assert "demo" in done.stderr


def test_ask_without_thinking_and_with_a_budget():
    plain = json.loads(qwendesk("ask", "--json", "--no-think", "Tell me a joke").stdout)["turns"][0]
    assert plain["reasoning"] == ""
    assert plain["answer"].startswith("Why was the little token sad?")
    cut = json.loads(qwendesk("ask", "--json", "--think-budget", "3", "Tell me a joke").stdout)["turns"][0]
    assert cut["reasoning_tokens"] == 3
    assert cut["answer"] == plain["answer"]


def test_a_broken_file_exits_3(tmp_path):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(demo_model().read_bytes()[:100_000])
    done = qwendesk("ask", "--model", str(cut), "hi")
    assert done.returncode == 3
    assert "cut.gguf" in done.stderr
    assert done.stdout == ""


def test_doctor_passes():
    done = qwendesk("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["passed"]
    assert result["system_info"]


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send another one Ctrl-C there")
def test_ctrl_c_stops_answer_and_worker():
    with subprocess.Popen(
        [sys.executable, "-m", "qwendesk", "ask", "--no-think", *ENDLESS, "Hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.read(5)
        worker = worker_of(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    assert not worker.is_running()


def test_a_killed_engine_exits_4():
    with subprocess.Popen(
        [sys.executable, "-m", "qwendesk", "ask", "--no-think", *ENDLESS, "Hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.read(5)
        worker = worker_of(process)
        worker.kill()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 4
    assert (b"ended by another program" if sys.platform == "win32" else b"was killed") in errors


def test_worker_exits_after_the_app_is_killed():
    with subprocess.Popen(
        [sys.executable, "-m", "qwendesk", "ask", "--no-think", *ENDLESS, "Hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout.read(5)
        worker = worker_of(process)
        process.kill()
    worker.wait(timeout=120)
    assert not worker.is_running()


def test_closed_output_pipe_stops_the_answer_quietly():
    with subprocess.Popen(
        [sys.executable, "-m", "qwendesk", "ask", "--no-think", *ENDLESS, "Hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.read(5)
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(timeout=120) == 0
    assert b"Error" not in errors
