"""What every test gets: folders of its own session, no real screen, and a check that it left nothing behind."""

import gc
import inspect
import os
import random
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from qwendesk.core import paths
from tests.leaks import Known, Watch
from tests.pictures import ShapePicture
from tests.user_folders import user_variables
from tests.xvfb import running_xvfb
from tools.real_models import GEMMA, SMOLLM2, RealModel

# No deadline, because nothing timed is asserted. `make test` draws the same examples each time, so that a change
# never fails for luck; `make soak` draws new ones, and prints what to write down to see a failure again.
hypothesis.settings.register_profile("test", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("soak", deadline=None, database=None, max_examples=5000, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: Qt's platform and the example profile."""
    config.pluginmanager.register(SessionFixtures())
    # What a test starts inherits it too. A test of a real window sets its own for the process it starts.
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    if sys.platform == "win32":
        # Offscreen, Qt does not look where Windows has its fonts, and draws a wide box for every letter.
        os.environ.setdefault("QT_QPA_FONTDIR", str(Path(os.environ["SYSTEMROOT"], "Fonts")))
    # The engine's threads wait for each other after every step. Spinning, two of them on a busy machine write 20 tokens
    # a second where one writes 360; sleeping, they come out two to seven times as fast as that.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    hypothesis.settings.load_profile("soak" if config.option.markexpr == "soak" else "test")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Coroutine tests run on asyncio's loop, unless they ask for Qt's (`qt_loop`, as `desk` of a window does)."""
    made = yield
    for item in made if isinstance(made, list) else [made]:
        is_coroutine = isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)
        if is_coroutine and "qt_loop" not in item.fixturenames:
            item.add_marker(pytest.mark.asyncio)
    return made


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of this session's own: no test reads or writes the settings, caches or logs of whoever runs it."""
    root = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in user_variables(root).items():
            Path(folder).mkdir(parents=True, exist_ok=True)
            patch.setenv(variable, folder)
        (root / "runtime").chmod(0o700)
        for variable in ("DISPLAY", "WAYLAND_DISPLAY", "ENGINE"):  # with test.cmd's ENGINE, windows would download one
            patch.delenv(variable, raising=False)
        yield root


@pytest.fixture(autouse=True)
def nothing_measured(own_folders: Path) -> None:
    """What earlier tests measured on this PC doesn't change the plans and offers of this one."""
    for name in ("speeds.json", "measured_loads.json", "draft-speedups.json"):
        (paths.data_folder() / name).unlink(missing_ok=True)


_before_test = Known()
"""What ran before the present test."""
_of_session = Known()
"""What ran before any test, and what fixtures of the whole session started."""


class SessionFixtures:
    """What a fixture of the whole session starts is not left behind by whichever module asks for it first.

    A plugin, because pytest asks no conftest.py below the root about fixtures of the session.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        if fixturedef.scope != "session":
            return (yield)
        before = Known()
        result = yield
        _of_session.add(Known(), before)
        _before_test.add_running()
        return result


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind_by_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a module whose fixtures leave something running, or whose tests do in ways that Python does not see.

    What exists when a module begins is set aside from garbage collection: the one after each test then looks at what
    the test made, and takes a millisecond where one over all imported modules takes 0.2 s.
    """
    gc.collect()
    gc.freeze()
    before = Known()
    yield
    before.add(_of_session, before)
    problems = Watch(before).problems(list_processes=True)
    if problems:
        pytest.fail(f"{request.node.nodeid} left something behind:\n" + "\n".join(problems), pytrace=False)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a process or thread running, or an exception nobody handled.

    It is set up before every other fixture of one test and torn down after them, so what a fixture closes is closed
    by then. What a fixture of a whole module or session starts in its set-up is not counted.
    """
    _before_test.add_new()
    watch = Watch(_before_test)
    yield
    problems = watch.problems()
    if problems:
        pytest.fail(f"{request.node.nodeid} left something behind:\n" + "\n".join(problems), pytrace=False)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """The same random numbers for each test, whatever ran before it."""
    random.seed(0)


@pytest.fixture(scope="session")
def xvfb_display() -> Iterator[str]:
    """The name (":5") of an X server of this session's own, 1920x1080, for a test that starts a real window."""
    if not sys.platform.startswith("linux"):
        pytest.skip("Xvfb is for Linux; here a real window needs a real screen")
    with running_xvfb(1920, 1080) as display:
        yield display


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real model that is not ours: SmolLM2-135M-Instruct."""
    return _real_model(SMOLLM2)


@pytest.fixture(scope="session")
def gemma() -> Path:
    """A real base model that is not ours: gemma-3-270m. For tests of `make soak`: it is large."""
    return _real_model(GEMMA)


def _real_model(model: RealModel) -> Path:
    if not model.is_here:
        sentence = f"{model.file} is not here: run python -m tools.real_models {model.name}"
        pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)
    return model.path


@pytest.fixture
def shape_picture(tmp_path: Path) -> Callable[..., Path]:
    """Makes a picture file of one coloured shape: `shape_picture("red", "circle")`, as in tests/pictures.py."""

    def make(colour: str, shape: str, *, background: str = "white", side: int = 128, name: str = "") -> Path:
        picture = ShapePicture(colour, shape, background, side)
        path = tmp_path / (name or f"{colour}-{shape}-{side}.png")
        picture.draw().save(path)
        return path

    return make
