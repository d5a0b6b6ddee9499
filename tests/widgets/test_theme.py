"""Both themes: readable, complete, and the only place where colours are."""

import gc
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAccessibilityHints, QIcon, QPixmap
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QPushButton, QStyle, QStyleOptionButton

import qwendesk
from qwendesk.widgets.icons import icon, pixmap
from qwendesk.widgets.stylesheet import stylesheet
from qwendesk.widgets.theme import contrast, load_theme, mix, resolve, theme_folder
from qwendesk.widgets.theme_keeper import Density, ThemeKeeper

PACKAGE = Path(qwendesk.__file__).parent
QT_FOLDERS = [PACKAGE / "widgets", PACKAGE / "app", *PACKAGE.glob("*/view")]
THEMES = sorted(path.stem for path in theme_folder().glob("*.toml"))
READABLE = 4.5
"""The WCAG contrast of normal text, level AA."""

PLAIN_GROUNDS = ("window", "panel", "card", "field", "hover", "card_hover", "tooltip")
TEXT_ON_GROUND = [
    *((text, ground) for text in ("text", "text_dim") for ground in PLAIN_GROUNDS),
    *(("text_link", ground) for ground in ("window", "panel", "field", "hover")),
    *((text, "field") for text in ("text_warn", "text_bad")),
    ("text_good", "chip_good"),
    ("text_warn", "chip_warn"),
    ("text_bad", "chip_bad"),
    ("text_info", "chip_info"),
    ("text_link", "chip_accent"),
    ("text_dim", "chip_plain"),
    ("text", "pill_on"),
    ("text", "pill_on_hover"),
    ("text", "drop"),
    ("text", "progress"),
    ("text", "banner_bad"),
    ("text", "banner_warn"),
    ("text_dim", "banner_bad"),
    ("text_dim", "banner_warn"),
    ("on_fill", "fill"),
    ("on_fill", "fill_hover"),
    ("on_fill", "fill_pressed"),
    ("on_fill_off", "fill_off"),
    ("selection_text", "selection"),
    ("text", "code_inline"),
    ("text_dim", "code_background"),
    *(
        (f"code_{kind}", "code_background")
        for kind in ("text", "keyword", "name", "string", "number", "comment", "error")
    ),
]


SEEN = 3.0
"""The WCAG contrast of large shapes, of a focus ring against what is around it; taken for disabled text too."""
MORE = 7.0
"""Of normal text, level AAA: what a theme of high contrast is for."""
DISABLED = [("text_off", ground) for ground in PLAIN_GROUNDS]
RINGS = [
    *(("focus", ground) for ground in ("window", "panel", "card", "field", "hover", "card_hover", "tooltip")),
    ("focus_on_fill", "fill"),
    ("text_warn", "chip_warn"),
    ("drop_border", "drop"),
    ("accent", "meter_free"),
]
"""A primary button's ring is in the colour of text, a tag's in its own."""


def too_faint(name: str, pairs: list[tuple[str, str]], least: float) -> list[str]:
    theme = load_theme(name)
    found = {f"{top} on {ground}": contrast(theme[top], theme[ground]) for top, ground in pairs}
    return [f"{pair}: {ratio:.2f}" for pair, ratio in found.items() if ratio < least]


def test_all_themes_have_the_same_roles() -> None:
    assert THEMES == ["contrast-dark", "contrast-light", "dark", "light"]
    roles = {frozenset(load_theme(name).roles) for name in THEMES}
    assert len(roles) == 1
    assert [load_theme(name).is_dark for name in THEMES] == [True, False, True, False]


@pytest.mark.parametrize("name", THEMES)
def test_text_is_readable_on_its_background(name: str) -> None:
    assert too_faint(name, TEXT_ON_GROUND, READABLE) == []


@pytest.mark.parametrize("name", THEMES)
def test_disabled_text_is_readable_and_focus_is_visible(name: str) -> None:
    assert too_faint(name, DISABLED, SEEN) == []
    assert too_faint(name, RINGS, SEEN) == []


@pytest.mark.parametrize("name", [name for name in THEMES if name.startswith("contrast")])
def test_high_contrast_theme_has_more_contrast(name: str) -> None:
    assert too_faint(name, TEXT_ON_GROUND, MORE) == []
    assert too_faint(name, [(line, "panel") for line in ("border", "divider", "scroll_handle")], MORE) == []


def test_high_contrast_is_chosen_by_the_user_or_the_system(
    keeper: ThemeKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.choose("contrast")
    assert keeper.theme.name.startswith("contrast-")
    keeper.choose("dark")
    monkeypatch.setattr(QAccessibilityHints, "contrastPreference", lambda _hints: Qt.ContrastPreference.HighContrast)
    assert keeper.theme.name == "dark"
    keeper.choose("system")
    assert keeper.theme.name.startswith("contrast-")


@pytest.mark.parametrize("name", THEMES)
def test_the_stylesheet_uses_only_roles_of_the_theme(name: str) -> None:
    sheet = stylesheet(load_theme(name))
    assert "@" not in sheet
    assert load_theme(name)["window"] in sheet


def test_reports_and_commands_keep_a_monospaced_font_at_every_text_size(keeper: ThemeKeeper) -> None:
    report, prompt = QPlainTextEdit(), QPlainTextEdit()
    report.setProperty("kind", "details")
    prompt.setProperty("kind", "prompt")
    for each in (report, prompt):
        each.show()
    for theme, zoom in (("dark", 1.0), ("light", 1.3)):
        keeper.set_text_scale(zoom)
        keeper.choose(theme)  # at once, where another text size soon after the first would wait
        font = report.document().defaultFont()
        assert font.families() == keeper.theme.mono_font(12).families()
        assert font.pixelSize() == keeper.theme.px(12)
        assert prompt.document().defaultFont().families() == keeper.theme.font(12).families()
    for each in (report, prompt):
        each.deleteLater()


def test_no_colour_is_written_in_a_widget() -> None:
    literal = re.compile(r"""#[0-9a-fA-F]{3,8}\b|QColor\(["'\d]|GlobalColor\.(?!transparent)|\brgba?\(""")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for folder in QT_FOLDERS
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if literal.search(line)
    ]
    assert found == []


def test_a_rule_may_only_name_base_colours() -> None:
    base = {"accent": "#FF0000", "ground": "#000000"}
    assert resolve("accent", base) == "#FF0000"
    assert resolve("accent 50% over ground", base) == "#800000"
    for wrong in ("blue", "accent 50% over blue", "#123456", "accent 50%"):
        with pytest.raises(ValueError, match="not a colour rule"):
            resolve(wrong, base)


def test_contrast_and_mixed_colours_are_computed() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#777777") == pytest.approx(1)
    assert mix("#FFFFFF", "#000000", 0.25) == "#404040"


def test_text_zoom_scales_every_size(keeper: ThemeKeeper) -> None:
    assert keeper.theme.px(14) == 14
    keeper.zoom(3)
    assert keeper.theme.px(14) == 18
    for _ in range(20):
        keeper.zoom(-1)
    assert keeper.theme.px(14) == 11
    keeper.zoom(0)
    assert keeper.theme.px(14) == 14


def test_compact_density_is_smaller_and_reported_once(keeper: ThemeKeeper) -> None:
    told: list[bool] = []
    keeper.changed.connect(lambda: told.append(keeper.theme.is_compact))
    assert [keeper.theme.space(pixels) for pixels in (4, 8, 12, 16, 24)] == [4, 8, 12, 16, 24]
    keeper.set_density("compact")
    keeper.set_density("compact")
    assert [keeper.theme.space(pixels) for pixels in (1, 4, 8, 12, 16, 24)] == [1, 2, 6, 8, 10, 16]
    assert keeper.theme.px(14) == 14
    assert told == [True]


def test_theme_change_is_reported_once(keeper: ThemeKeeper) -> None:
    told: list[str] = []
    keeper.changed.connect(lambda: told.append(keeper.theme.name))
    keeper.choose("light")
    keeper.choose("light")
    keeper.choose("dark")
    assert told == ["light", "dark"]


def test_an_icon_is_drawn_in_the_asked_colour(app: QApplication) -> None:
    image = pixmap("send", "#12AB34", 24, 2.0).toImage()
    assert (image.width(), image.devicePixelRatio()) == (48, 2.0)
    solid = {
        image.pixelColor(x, y).name() for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha() == 255
    }
    assert solid == {"#12ab34"}


def test_an_icon_is_drawn_when_it_is_shown_and_only_for_its_screen(app: QApplication) -> None:
    pixmap.cache_clear()
    button = QPushButton()
    button.setIcon(icon("send", "#12AB34", 24, "#AB1234"))
    assert pixmap.cache_info().currsize == 0
    button.setIconSize(QSize(24, 24))
    button.grab()
    assert pixmap.cache_info().currsize == 1


def test_an_icon_has_another_colour_while_its_button_is_disabled(app: QApplication) -> None:
    drawn = icon("send", "#12AB34", 24, "#AB1234")
    for mode, color in ((QIcon.Mode.Normal, "#12ab34"), (QIcon.Mode.Disabled, "#ab1234")):
        image = drawn.pixmap(QSize(24, 24), 2.0, mode).toImage()
        assert (image.width(), image.devicePixelRatio()) == (48, 2.0)
        assert color in {image.pixelColor(x, y).name() for x in range(48) for y in range(48)}


def test_an_icon_outlives_what_made_it(app: QApplication) -> None:
    """Qt copies the drawing of an icon that is changed, such as one to which somebody adds a pixmap."""
    icon.cache_clear()
    button = QPushButton()
    button.setIcon(icon("send", "#12AB34", 24))
    copy = QIcon(button.icon())
    copy.addPixmap(QPixmap(4, 4))
    icon.cache_clear()
    gc.collect()
    assert not copy.pixmap(8, 8).isNull()
    button.grab()


def test_every_named_icon_has_a_drawing(app: QApplication) -> None:
    pattern = re.compile(r"""(?:icon_name=|IconButton\(\s*)"(\w+)\"""")
    named = {name for path in PACKAGE.rglob("*.py") for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert "attach" in named
    for name in named:
        assert not icon(name, "#000000").pixmap(16, 16).isNull()


def test_an_icon_without_a_drawing_is_an_error(app: QApplication) -> None:
    with pytest.raises(FileNotFoundError):
        icon("no_such_icon", "#000000")


def test_a_placeholder_is_readable_too(keeper: ThemeKeeper) -> None:
    """Where the stylesheet says nothing, Qt takes the text's colour at half its strength."""
    field = QLineEdit()
    field.ensurePolished()
    assert field.palette().placeholderText().color() == keeper.theme.color("text_dim")


@pytest.mark.parametrize("density", ["comfortable", "compact"])
def test_button_keeps_its_size_when_focused(keeper: ThemeKeeper, density: Density) -> None:
    keeper.set_density(density)
    button = QPushButton("Download")
    button.setProperty("kind", "primary")
    button.ensurePolished()
    option = QStyleOptionButton()
    button.initStyleOption(option)

    def size() -> QSize:
        return button.style().sizeFromContents(QStyle.ContentsType.CT_PushButton, option, QSize(60, 16), button)

    before = size()
    option.state |= QStyle.StateFlag.State_HasFocus
    assert size() == before
    assert before.height() > 16
