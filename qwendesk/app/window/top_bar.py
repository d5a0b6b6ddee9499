"""The top bar and the navigation rail: buttons for the chat list, the model, the inspector, the menus and the pages."""

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
)

from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import incognito_text
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import IconButton, TextButton, ThemedIcon, describe
from qwendesk.widgets.display_texts import model_label
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.layouts import DensitySpacing, laid_out_once
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import ThemeChoice, app_theme, current_theme

_NARROWEST = 64
# Logical pixels by which the rail is wider than its buttons.
_SIDES = 8
_ICON = 20
# Padding above and below the icon and label of a button, in total.
_RAIL_AIR = 18
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
            button.setFixedSize(QSize(width, _ICON + metrics.height() + theme.space(_RAIL_AIR)))
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


# Padding above and below the model button, in total.
_AIR = 16
# Minimum height of the bar; its square buttons have a height of 34.
_LOWEST = 40
# Below this width the app's name and the inspector's button are hidden, and the demo tag is shortened.
_NARROW = 900


class TopBar(QFrame):
    """Shows an EngineState, and emits a signal for each action that the user chooses."""

    eject_asked = Signal()
    sidebar_asked = Signal()
    inspector_asked = Signal()
    menu_asked = Signal()

    def __init__(self, navigation: Navigation) -> None:
        super().__init__()
        self.setProperty("kind", "topbar")
        self._brand = QLabel("QwenDesk")
        self._brand.setProperty("kind", "brand")
        self.model = ModelButton()
        self.model.clicked.connect(navigation.picker_asked)
        self._eject = TextButton(tr("Eject"), kind="quiet")
        self._describe_eject()
        self._eject.clicked.connect(self.eject_asked)
        self._demo_tag = TextButton(tr("Demo model: knows a few topics"), kind="tag")
        describe(
            self._demo_tag,
            "model.demo",
            tr("Demo model: knows a few topics"),
            tr("The built-in demo is for trying the app. For real answers, click here and choose a model for this PC."),
        )
        self._demo_tag.clicked.connect(lambda: navigation.models_tab_asked.emit("pc"))
        self._incognito = QLabel(tr("Incognito"))
        self._incognito.setObjectName("chat.incognito")
        self._incognito.setProperty("chip", "accent")
        self._incognito.hide()
        sidebar = IconButton("sidebar", size=19, side=34)
        describe(
            sidebar,
            "chats.toggle",
            tr("List of chats"),
            tr("Show or hide the chat list"),
            COMMANDS["sidebar"].shortcut,
        )
        sidebar.clicked.connect(self.sidebar_asked)
        left = QHBoxLayout()
        left.setSpacing(16)
        left.addWidget(sidebar)
        left.addWidget(self._brand)
        left.addWidget(self._incognito, 0, Qt.AlignmentFlag.AlignVCenter)
        left.addStretch(1)

        middle = QHBoxLayout()
        middle.setSpacing(8)
        for widget in (self.model, self._eject, self._demo_tag):
            middle.addWidget(widget)
        grid = QGridLayout(self)
        grid.setContentsMargins(15, 0, 12, 0)
        grid.addLayout(left, 0, 0)
        grid.addLayout(middle, 0, 1, Qt.AlignmentFlag.AlignCenter)
        self.menu_button = IconButton("menu", size=19, side=34)
        describe(self.menu_button, "menu.button", tr("Menu"), shortcut=COMMANDS["menu"].shortcut)
        self.menu_button.clicked.connect(self.menu_asked)
        self._inspector = IconButton("inspector", size=19, side=34)
        describe(
            self._inspector,
            "inspector.toggle",
            tr("Options"),
            tr("Show or hide the options of the model and this chat"),
            COMMANDS["inspector"].shortcut,
        )
        self._inspector.clicked.connect(self.inspector_asked)
        right = QHBoxLayout()
        right.setSpacing(4)
        right.addStretch(1)
        right.addWidget(self._inspector)
        right.addWidget(self.menu_button)
        grid.addLayout(right, 0, 2)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(2, 1)
        app_theme().changed.connect(self._set_height)
        self._set_height()
        self.show_state(EngineState())

    def show_state(self, state: EngineState, *, is_measuring: bool = False) -> None:
        self.model.show_state(state, is_measuring=is_measuring)
        loaded = state.report is not None
        loading = state.phase in (Phase.STARTING, Phase.LOADING)
        demo = state.requested is not None and is_demo(state.requested.model)
        self._incognito.setToolTip(incognito_text(state.model))
        with laid_out_once(self):
            self._eject.setVisible(loaded)
            self._demo_tag.setVisible(demo and (loaded or loading))
        served = state.report.served_by if state.report is not None else None
        if served is not None:
            self._eject.setToolTip(tr("Stop using {0}. The model stays loaded there.", served.name))
        else:
            self._describe_eject()

    def _describe_eject(self) -> None:
        tip = tr("Unload the model and free its memory")
        describe(self._eject, "model.eject", tr("Eject"), tip, COMMANDS["eject"].shortcut)

    def show_incognito(self, *, on: bool) -> None:
        """Show or hide the incognito tag, which is also here because the chat list may be hidden."""
        self._incognito.setVisible(on)

    def _set_height(self) -> None:
        self.setFixedHeight(max(_LOWEST, self.model.height() + current_theme().space(_AIR)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= _NARROW
        self._brand.setVisible(wide)
        self._inspector.setVisible(wide)
        self._demo_tag.setText(tr("Demo model: knows a few topics") if wide else tr("Demo: few topics"))


_DOTS = {
    Phase.OFF: "dot_off",
    Phase.IDLE: "dot_off",
    Phase.STARTING: "dot_loading",
    Phase.LOADING: "dot_loading",
    Phase.READY: "dot_ready",
    Phase.ANSWERING: "dot_busy",
}
_PADDING = 14
_DOT = 8
# Padding above and below the text, in total.
_BUTTON_AIR = 19
_WIDEST = 640
# Width that the name of a model keeps before what follows it is cut, too.
_LEAST_NAME = 60


def fitting_label(label: str, metrics: QFontMetrics, width: int) -> str:
    """Return `label` in at most `width` pixels. The model's name is shortened before what follows it."""
    name, dot, rest = label.partition(" · ")
    for_name = width - metrics.horizontalAdvance(dot + rest)
    if dot and for_name >= _LEAST_NAME:
        return metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, for_name) + dot + rest
    return metrics.elidedText(label, Qt.TextElideMode.ElideRight, width)


class ModelButton(QPushButton):
    """Paints itself, because the progress of a load fills the button behind the text."""

    def __init__(self) -> None:
        super().__init__()
        self._state = EngineState()
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(self._high)
        app_theme().changed.connect(self._on_theme)
        self.show_state(self._state)

    @property
    def _high(self) -> int:
        return current_theme().px(13) + current_theme().space(_BUTTON_AIR)

    def _on_theme(self) -> None:
        self.setFixedHeight(self._high)
        self.updateGeometry()

    def show_state(self, state: EngineState, *, is_measuring: bool = False) -> None:
        self._state = state
        label = model_label(state, is_measuring=is_measuring)
        tip = tr("Choose a model")
        if state.report is not None:
            tip = tr("{0}\nClick to choose another model", state.report.options.model)
        elif is_measuring and state.idle_unloaded is not None:
            tip = tr("Unloaded while a measurement needs the memory.\nClick to choose another model")
        elif state.questions_held:
            tip = tr("Unloaded while another program needs the memory.\nClick to choose another model")
        elif state.idle_unloaded is not None:
            tip = tr("Ejected to free memory. Loads again with your next message.\nClick to choose another model")
        describe(self, "model.button", tr("Model: {0}", label), tip, COMMANDS["model_menu"].shortcut)
        if label != self.text():
            self.setText(label)
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        text = QFontMetrics(current_theme().font(13)).horizontalAdvance(self.text())
        return QSize(min(_WIDEST, text + 2 * _PADDING + _DOT + 8 + 22), self._high)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._high)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline = QPainterPath()
        outline.addRoundedRect(area, 10, 10)
        painter.fillPath(outline, theme.color("card_hover" if self.underMouse() else "card"))
        if self._state.phase in (Phase.STARTING, Phase.LOADING):
            painter.save()
            painter.setClipPath(outline)
            painter.fillRect(
                QRectF(0, 0, self.width() * self._state.load_fraction, self.height()), theme.color("progress")
            )
            painter.restore()
        painter.setPen(QPen(theme.color("focus" if self.hasFocus() else "border"), 1))
        painter.drawPath(outline)
        painter.setPen(Qt.PenStyle.NoPen)
        role = "dot_bad" if self._state.engine_exit or self._state.failure else _DOTS[self._state.phase]
        painter.setBrush(theme.color(role))
        painter.drawEllipse(QRectF(_PADDING, (self.height() - _DOT) / 2, _DOT, _DOT))
        self._paint_text(painter)
        painter.end()

    @property
    def text_room(self) -> QRect:
        """The place of the text."""
        left = _PADDING + _DOT + 8
        return QRect(left, 0, self.width() - left - _PADDING - 18, self.height())

    def _paint_text(self, painter: QPainter) -> None:
        theme, room = current_theme(), self.text_room
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        text = fitting_label(self.text(), painter.fontMetrics(), room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        arrow = pixmap("down", theme["text_dim"], 14, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - _PADDING - 14 + 2, (self.height() - 14) // 2, arrow)
