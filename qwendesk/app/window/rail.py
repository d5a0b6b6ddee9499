"""The navigation rail on the left: one button per page, and the theme menu at the bottom."""

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QFontMetrics
from PySide6.QtWidgets import QFrame, QLabel, QToolButton, QVBoxLayout

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import ThemedIcon, describe
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import ThemeChoice, app_theme, current_theme

_NARROWEST = 64
# Logical pixels by which the rail is wider than its buttons.
_SIDES = 8
_ICON = 20
# Padding above and below the icon and label of a button, in total.
_AIR = 18
_AT_BOTTOM = ("settings",)


class Rail(QFrame):
    page_chosen = Signal(str)
    """Carries the id of the page."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: dict[str, tuple[QToolButton, ThemedIcon]] = {}
        self._badges: dict[str, QLabel] = {}
        self.setProperty("kind", "rail")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(4, 12, 3, 12)
        self._column.setSpacing(6)
        DensitySpacing(self._column)
        self._column.addStretch(1)
        self._theme_button, self._theme_icon = self._button("theme", tr("Theme"))
        describe(self._theme_button, "rail.theme", tr("Theme"), tr("Dark, light, high contrast, or follow the system"))
        self._theme_menu = self._make_theme_menu()
        self._theme_button.clicked.connect(self._open_theme_menu)
        self._column.addWidget(self._theme_button)
        self._resize_buttons()
        app_theme().follow(self, self._refresh)

    def add_page(self, page: str, icon_name: str, label: str, shortcut: str) -> None:
        button, themed = self._button(icon_name, label)
        describe(button, f"rail.{page}", label, shortcut=shortcut)
        button.setCheckable(True)
        button.clicked.connect(lambda: self.page_chosen.emit(page))
        if page in _AT_BOTTOM:
            self._column.addWidget(button)
        else:
            self._column.insertWidget(sum(name not in _AT_BOTTOM for name in self._pages), button)
        self._pages[page] = (button, themed)
        self._resize_buttons()
        if len(self._pages) == 1:
            self.show_page(page)

    def show_page(self, page: str) -> None:
        # An exclusive QButtonGroup is not used, because Tab would reach only its checked button.
        for name, (button, themed) in self._pages.items():
            button.setChecked(name == page)
            themed.show(_icon_of(button), "text" if name == page else "text_dim")

    def set_badge(self, page: str, text: str, spoken: str) -> None:
        """Show a small count over a page's icon, or none for "". `spoken` is the accessible name with the count."""
        button, _ = self._pages[page]
        badge = self._badges.get(page)
        if badge is None:
            badge = self._badges[page] = QLabel(button)
            badge.setObjectName(f"rail.{page}.badge")
            badge.setProperty("kind", "badge")
            badge.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            badge.setAlignment(Qt.AlignmentFlag.AlignCenter)
        badge.setText(text)
        _place_badge(badge, button)
        badge.setVisible(bool(text))
        button.setAccessibleName(spoken if text else button.text())

    def _button(self, icon_name: str, label: str) -> tuple[QToolButton, ThemedIcon]:
        button = QToolButton()
        button.setProperty("kind", "rail")
        button.setProperty("icon_name", icon_name)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        button.setText(label)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        themed = ThemedIcon(button, "text_dim", _ICON)
        themed.show(icon_name)
        return button, themed

    def _make_theme_menu(self) -> Menu:
        menu = Menu(self)
        group = QActionGroup(menu)
        choices: tuple[tuple[ThemeChoice, str], ...] = (
            ("system", tr("Follow the system")),
            ("dark", tr("Dark")),
            ("light", tr("Light")),
            ("contrast", tr("High contrast")),
        )
        for choice, text in choices:
            action = QAction(text, menu)
            action.setObjectName(f"rail.theme.{choice}")
            action.setCheckable(True)
            action.setChecked(app_theme().choice == choice)
            action.triggered.connect(lambda _checked=False, choice=choice: app_theme().choose(choice))
            group.addAction(action)
            menu.addAction(action)
        return menu

    def _open_theme_menu(self) -> None:
        height, button = self._theme_menu.sizeHint().height(), self._theme_button.size()
        corner = QPoint(button.width() + 8, button.height() - height)
        self._theme_menu.popup(self._theme_button.mapToGlobal(corner))

    def _resize_buttons(self) -> None:
        """Make all buttons as large as the longest label needs."""
        theme = current_theme()
        metrics = QFontMetrics(theme.font(11))
        buttons = [self._theme_button, *(button for button, _ in self._pages.values())]
        widest = max(metrics.horizontalAdvance(button.text()) for button in buttons)
        width = max(_NARROWEST - _SIDES, widest + _SIDES)
        self.setFixedWidth(width + _SIDES)
        for button in buttons:
            button.setFixedSize(QSize(width, _ICON + metrics.height() + theme.space(_AIR)))
        for page, badge in self._badges.items():
            _place_badge(badge, self._pages[page][0])

    def _refresh(self) -> None:
        self._resize_buttons()
        self._theme_icon.refresh()
        for _, themed in self._pages.values():
            themed.refresh()


def _icon_of(button: QToolButton) -> str:
    return str(button.property("icon_name"))


def _place_badge(badge: QLabel, button: QToolButton) -> None:
    """Move the badge to the upper right corner of its button."""
    size = badge.sizeHint()
    high = max(18, size.height())
    badge.setFixedSize(max(high, size.width()), high)
    badge.move(button.width() - badge.width() - 2, 2)
