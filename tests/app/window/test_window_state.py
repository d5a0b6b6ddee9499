"""How the window was left, on disk."""

from pathlib import Path

from qwendesk.app.window.window_state import WindowState, read_window_state, write_window_state


def test_state_is_read_as_written(tmp_path: Path) -> None:
    state = WindowState(x=-5, y=7, width=900, height=600, page="models", has_sidebar=False, recent=("quit",))
    write_window_state(state, tmp_path / "new" / "window.json")
    assert read_window_state(tmp_path / "new" / "window.json") == state


def test_unusable_file_gives_the_defaults(tmp_path: Path) -> None:
    assert read_window_state(tmp_path / "window.json") == WindowState()
    (tmp_path / "window.json").write_text("[")
    assert read_window_state(tmp_path / "window.json") == WindowState()


def test_failed_write_raises_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_window_state(WindowState(), tmp_path / "file" / "window.json")
    assert read_window_state(tmp_path / "window.json") == WindowState()
