"""The widget kit: its labels show text as it is, and its rows hold what they are given in that order."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from qwendesk.widgets.kit import PADDING, STRETCH, IconLabel, button, card, centred, column, keep_room, label, row
from qwendesk.widgets.layouts import SteadyStack, widget_with
from qwendesk.widgets.theme_keeper import ThemeKeeper


def test_label_shows_markup_as_text(keeper: ThemeKeeper) -> None:
    """The name of a file is what a stranger wrote."""
    made = label("<b>x</b>", "dim", name="some.label")

    assert made.textFormat() is Qt.TextFormat.PlainText
    assert (made.text(), made.property("kind"), made.objectName()) == ("<b>x</b>", "dim", "some.label")


def test_button_has_the_names_that_tests_and_screen_readers_find(keeper: ThemeKeeper) -> None:
    made = button("Load", "some.load", said="Load the model", tip="Loads it")

    assert (made.objectName(), made.accessibleName(), made.toolTip()) == ("some.load", "Load the model", "Loads it")


def test_row_holds_widgets_layouts_gaps_and_free_space_in_order(keeper: ThemeKeeper) -> None:
    first, last = QLabel("a"), QLabel("b")

    made = row(first, 12, column(last), STRETCH)

    assert [made.itemAt(place).widget() for place in range(4)] == [first, None, None, None]
    assert made.itemAt(1).sizeHint().width() == 12
    assert made.stretch(3) == 1


def test_card_pads_its_content(keeper: ThemeKeeper) -> None:
    made = card(column(QLabel("a")), name="some.card")

    layout = made.layout()
    assert layout is not None
    assert layout.contentsMargins().left() == layout.contentsMargins().top() == PADDING


def test_centred_column_is_no_wider_than_the_grid(keeper: ThemeKeeper) -> None:
    inner, window = QWidget(), QWidget()
    window.setLayout(centred(inner, 752))

    for width, wanted in ((1000, 752), (600, 600)):
        window.resize(width, 100)
        window.show()
        # The stretches beside it take a thousandth each.
        assert wanted - 2 <= inner.width() <= wanted


def test_hidden_widget_keeps_its_room(keeper: ThemeKeeper) -> None:
    hidden = QLabel("some words")
    holder = widget_with(row(hidden))
    width = holder.sizeHint().width()
    keep_room(hidden)

    hidden.hide()

    assert holder.sizeHint().width() == width


def test_icon_follows_the_theme(keeper: ThemeKeeper) -> None:
    keeper.choose("dark")
    made = IconLabel("warning", "text_warn")
    before = made.pixmap().toImage()

    keeper.choose("light")

    assert made.pixmap().toImage() != before


def test_stack_is_as_tall_as_its_tallest_page(keeper: ThemeKeeper) -> None:
    short, tall = QLabel("one"), QLabel("one\ntwo\nthree")
    stack = SteadyStack(short, tall)
    stack.show()
    heights = []
    for number in range(2):
        stack.show_page(number)
        heights.append(stack.sizeHint().height())

    assert heights == [tall.sizeHint().height()] * 2
    assert (short.isVisible(), tall.isVisible()) == (False, True)
