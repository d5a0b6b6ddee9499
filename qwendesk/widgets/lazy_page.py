"""A page that is built when it is first shown, in steps between which the window takes clicks."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.widgets.step_budget import StepBudget, StepwiseWork
from qwendesk.widgets.tab_order import focus_next

PageT = TypeVar("PageT", bound=QWidget)


class LazyPage(QWidget, Generic[PageT]):
    """A page that is built in steps when it is first shown or `when_built` is called, or at once by `page`.

    `build` yields after each step: None before there is a page, then the page, which is shown from then on while the
    remaining steps complete it.
    """

    def __init__(self, build: Callable[[], Iterator[PageT | None]]) -> None:
        super().__init__()
        self._build = build
        self._page: PageT | None = None
        self._is_built = False
        self._shows_steps = True
        self._waiting: list[Callable[[PageT], object]] = []
        self._work = StepwiseWork(self, StepBudget(self))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    @property
    def is_built(self) -> bool:
        """Whether the page is complete."""
        return self._is_built

    def page(self) -> PageT:
        """Return the page. Do all steps at once that weren't done yet."""
        if not self._is_built:
            # Qt would show what is added to a visible page only after the next event.
            self._shows_steps = False
            if self._page is not None:
                self._page.hide()
            self._work.start_later(self._steps)
            self._work.finish()
        assert self._page is not None
        return self._page

    def when_built(self, use: Callable[[PageT], object]) -> None:
        """Call `use` with the page: now if it is complete, otherwise when it is."""
        if self._is_built:
            use(self.page())
            return
        self._waiting.append(use)
        self._begin()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_built:
            self._begin()

    def _begin(self) -> None:
        """Begin with the next event, because showing the empty page is a step of its own."""
        self._work.start_later(self._steps)

    def _steps(self) -> Iterator[None]:
        for page in self._build():
            if page is not None and self._page is None:
                yield  # Qt now applies the stylesheet to all of it
                self._page = page
                self._column.addWidget(page)
                page.setVisible(self._shows_steps)
            yield
        assert self._page is not None, "a builder yields its page"
        self._page.show()
        yield  # what was added gets its place
        self._is_built = True
        if self.hasFocus():  # it was given to this page while there was nothing in it
            focus_next(self, None, forward=True)
        waiting, self._waiting = self._waiting, []
        for use in waiting:
            use(self._page)
