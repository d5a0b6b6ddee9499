"""The top bar: buttons for the chat list, the model, the inspector and the main menu, and the app's name."""

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QSizePolicy

from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import incognito_text
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.display_texts import model_label
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.theme_keeper import app_theme, current_theme

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

    def show_state(self, state: EngineState) -> None:
        self.model.show_state(state)
        loaded = state.report is not None
        loading = state.phase in (Phase.STARTING, Phase.LOADING)
        demo = state.requested is not None and is_demo(state.requested.model)
        self._incognito.setToolTip(incognito_text(state.model))
        self._eject.setVisible(loaded)
        served = state.report.served_by if state.report is not None else None
        if served is not None:
            self._eject.setToolTip(tr("Stop using {0}. The model stays loaded there.", served.name))
        else:
            self._describe_eject()
        self._demo_tag.setVisible(demo and (loaded or loading))

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
_WIDEST = 460


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

    def show_state(self, state: EngineState) -> None:
        self._state = state
        label = model_label(state)
        tip = tr("Choose a model")
        if state.report is not None:
            tip = tr("{0}\nClick to choose another model", state.report.options.model)
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

    def _paint_text(self, painter: QPainter) -> None:
        theme = current_theme()
        left = _PADDING + _DOT + 8
        room = QRect(left, 0, self.width() - left - _PADDING - 18, self.height())
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        text = painter.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        arrow = pixmap("down", theme["text_dim"], 14, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - _PADDING - 14 + 2, (self.height() - 14) // 2, arrow)
