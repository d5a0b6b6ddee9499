"""A search result that the pointer is over and one that is selected look different."""

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from qwendesk.chat.view.sidebar.chat_search import HitDelegate, HitModel
from qwendesk.core.chats import SearchHit
from qwendesk.widgets.theme_keeper import ThemeChoice, ThemeKeeper


@pytest.mark.parametrize("theme", ["dark", "light", "contrast"])
def test_hovered_and_selected_results_look_different(keeper: ThemeKeeper, theme: ThemeChoice) -> None:
    keeper.choose(theme)
    model = HitModel()
    model.show_hits((SearchHit(chat_id="1", title="Rivers", snippet=(("The ", False), ("Rhine", True))),))
    delegate, flag = HitDelegate(), QStyle.StateFlag
    looks = []
    for state in (flag.State_Enabled, flag.State_MouseOver, flag.State_Selected):
        image = QImage(260, 60, QImage.Format.Format_ARGB32)
        image.fill(keeper.theme.color("panel"))
        option = QStyleOptionViewItem()
        option.rect = QRect(0, 0, 260, 60)
        option.state = flag.State_Enabled | state
        painter = QPainter(image)
        delegate.paint(painter, option, model.index(0))
        painter.end()
        looks.append(image.pixelColor(130, 50).name())
    assert len(set(looks)) == 3
