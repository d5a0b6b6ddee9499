"""The checks that every test runs under must themselves catch what they are for."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.leaks import Watch

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """Instead of the one in conftest.py, which would report what these tests leave behind on purpose."""


def test_a_clean_test_has_no_problems() -> None:
    watch = Watch()
    threading.Thread(target=sum, args=([1, 2],)).start()
    subprocess.run([sys.executable, "-c", ""], check=True)

    assert watch.problems() == []


def test_a_running_child_process_is_reported_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.leaks._PATIENCE_S", 0.1)
    watch = Watch()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    (problem,) = watch.problems()

    assert "process" in problem
    assert "input()" in problem
    assert not psutil.pid_exists(child.pid)
    child.communicate()


def test_a_process_started_past_python_is_found_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from PySide6.QtCore import QProcess

    monkeypatch.setattr("tests.leaks._PATIENCE_S", 0.1)
    watch = Watch()
    process = QProcess()
    process.start(sys.executable, ["-c", "input()"])
    assert process.waitForStarted()

    (problem,) = watch.problems(list_processes=True)

    process.waitForFinished()
    assert "input()" in problem


LEAKING = """
import subprocess, sys, pytest

def start(by):
    return subprocess.Popen([sys.executable, "-c", f"import threading; threading.Event().wait()  # {by}"])

@pytest.fixture(scope="module")
def server():
    return start("by a fixture")

def test_first(server):
    pass

def test_second(server):
    start("by a test")

def test_third(server):
    pass
"""


def test_the_test_or_module_that_leaked_is_named(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parent.parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        "from tests.conftest import nothing_left_behind, nothing_left_behind_by_module\n"
        "import tests.leaks\ntests.leaks._PATIENCE_S = 0.1\n"
    )
    pytester.makepyfile(test_leaking=LEAKING)

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=3, errors=2)
    reports, _, _ = result.stdout.str().partition("short test summary info")  # which repeats them where CI is set
    of_test, of_module = reports.split("test_leaking.py left something behind")
    assert "test_leaking.py::test_second left something behind" in of_test
    assert "by a test" in of_test
    assert "by a fixture" in of_module
    assert "by a test" not in of_module


def test_a_running_thread_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.leaks._PATIENCE_S", 0.1)
    watch, end = Watch(), threading.Event()
    thread = threading.Thread(target=end.wait, name="forgotten")
    thread.start()

    problems = watch.problems()

    end.set()
    thread.join()
    assert problems == ["thread: forgotten"]


def test_an_exception_in_a_qt_slot_is_reported() -> None:
    from PySide6.QtCore import QObject, Signal

    class Sender(QObject):
        happened = Signal()

    def fail() -> None:
        raise ValueError("from a slot")

    watch = Watch()
    sender = Sender()
    sender.happened.connect(fail)
    sender.happened.emit()

    (problem,) = watch.problems()

    assert "ValueError: from a slot" in problem


def test_a_failed_task_that_nobody_awaited_is_reported() -> None:
    async def fail() -> None:
        raise ValueError("from a task")

    async def forget() -> None:
        task = asyncio.ensure_future(fail())
        await asyncio.wait([task])

    watch = Watch()
    asyncio.run(forget())

    (problem,) = watch.problems()

    assert "Task exception was never retrieved" in problem


def test_an_exception_in_a_loop_callback_is_reported() -> None:
    def fail() -> None:
        raise ValueError("from a callback")

    async def schedule() -> None:
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)

    watch = Watch()
    asyncio.run(schedule())

    (problem,) = watch.problems()

    assert "fail" in problem


def test_the_x_server_answers_and_ends_with_its_session(xvfb_display: str) -> None:
    assert xvfb_display.startswith(":")
    assert any(process.name() == "Xvfb" for process in psutil.Process().children())
