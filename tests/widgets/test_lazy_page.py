"""A page that is built in steps when it is first shown: what is in between, and who may want it early."""

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.step_budget import StepwiseWork

pytestmark = pytest.mark.usefixtures("pages_in_steps", "qt_loop")


class Settings(QWidget):
    """A page with a field, to which rows are added."""

    def __init__(self) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.column = QVBoxLayout(self)
        self.column.addWidget(self.field)

    @property
    def rows(self) -> list[str]:
        return [each.text() for each in self.findChildren(QLabel)]


class Builder:
    """Builds the page in four steps."""

    def __init__(self) -> None:
        self.made: list[Settings] = []

    def steps(self) -> Iterator[Settings | None]:
        yield None
        page = Settings()
        self.made.append(page)
        for row in ("language", "theme", "tray"):
            page.column.addWidget(QLabel(row))
            yield page


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def lazy(builder: Builder) -> Iterator[LazyPage[Settings]]:
    """In a window with a button above it."""
    window, page = QWidget(), LazyPage(builder.steps)
    column = QVBoxLayout(window)
    column.addWidget(QPushButton("Settings"))
    column.addWidget(page)
    yield page
    window.deleteLater()


async def passed(passes: int) -> None:
    """Let the loop run so many times."""
    for _ in range(passes):
        await asyncio.sleep(0)


async def until_built(page: LazyPage[Settings]) -> None:
    done = asyncio.Event()
    page.when_built(lambda _page: done.set())
    await done.wait()


async def test_it_is_built_once_when_it_is_first_shown(lazy: LazyPage[Settings], builder: Builder) -> None:
    assert builder.made == []
    lazy.window().show()
    assert not builder.made, "the first step is the only one before the window can take a click"
    await until_built(lazy)
    assert lazy.is_built
    lazy.window().hide()
    lazy.window().show()
    await asyncio.sleep(0)
    assert builder.made == [lazy.page()]
    assert lazy.page().rows == ["language", "theme", "tray"]
    assert lazy.page().field.isVisible()


async def test_what_is_built_already_is_shown_and_clicks_are_taken_in_between(
    lazy: LazyPage[Settings], builder: Builder
) -> None:
    seen = set[tuple[str, ...]]()
    lazy.window().show()
    while not lazy.is_built:
        await asyncio.sleep(0)
        seen.update(tuple(page.rows) for page in builder.made if page.isVisible())
    assert {("language",), ("language", "theme")} <= seen


async def test_whoever_needs_it_at_once_gets_it_at_once(lazy: LazyPage[Settings], builder: Builder) -> None:
    assert lazy.page().rows == ["language", "theme", "tray"]
    assert not lazy.page().isVisible()
    assert len(builder.made) == 1


@pytest.mark.parametrize("steps", range(6))
async def test_it_is_completed_from_any_step(lazy: LazyPage[Settings], builder: Builder, steps: int) -> None:
    lazy.window().show()
    await passed(steps)
    assert lazy.page().rows == ["language", "theme", "tray"]
    await passed(10)
    assert lazy.page().rows == ["language", "theme", "tray"]
    assert len(builder.made) == 1


async def test_who_waits_for_it_is_called_once_it_is_complete(lazy: LazyPage[Settings]) -> None:
    calls: list[list[str]] = []
    lazy.when_built(lambda page: calls.append(page.rows))
    assert calls == []
    await until_built(lazy)
    lazy.when_built(lambda page: calls.append(page.rows))
    assert calls == [["language", "theme", "tray"]] * 2


async def test_who_waits_is_called_by_whoever_needs_it_at_once(lazy: LazyPage[Settings]) -> None:
    calls: list[Settings] = []
    lazy.when_built(calls.append)
    page = lazy.page()
    assert calls == [page]


async def test_a_focus_that_was_given_to_the_empty_page_moves_to_its_first_control(
    lazy: LazyPage[Settings], app: QApplication
) -> None:
    lazy.window().show()
    lazy.window().activateWindow()
    lazy.setFocus()
    await until_built(lazy)
    assert app.focusWidget() is lazy.page().field


async def test_a_focus_elsewhere_stays_there(lazy: LazyPage[Settings], app: QApplication) -> None:
    lazy.window().show()
    lazy.window().activateWindow()
    button = lazy.window().findChild(QPushButton)
    assert button is not None
    button.setFocus()
    await until_built(lazy)
    assert app.focusWidget() is button


async def test_a_page_that_is_deleted_is_not_built_any_further(builder: Builder) -> None:
    lazy = LazyPage(builder.steps)
    lazy.show()
    lazy.deleteLater()
    QCoreApplication.sendPostedEvents(lazy, QEvent.Type.DeferredDelete)
    await passed(10)
    assert builder.made == []


async def test_work_that_fails_can_be_started_again(lazy: LazyPage[Settings]) -> None:
    work, done = StepwiseWork(lazy, None), list[str]()

    def fails() -> Iterator[None]:
        yield
        raise OSError("the disk is gone")

    def works() -> Iterator[None]:
        done.append("again")
        yield

    with pytest.raises(OSError, match="gone"):
        work.start(fails)
    assert not work.is_active
    work.start(works)
    assert done == ["again"]
