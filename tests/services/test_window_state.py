"""How the window was left, on disk."""

from pathlib import Path

from qwendesk.services.window_state import WindowState, read_window_state, write_window_state


def test_it_comes_back(tmp_path: Path) -> None:
    state = WindowState(x=-5, y=7, width=900, height=600, page="models", has_sidebar=False, recent=("quit",))
    write_window_state(state, tmp_path / "new" / "window.json")
    assert read_window_state(tmp_path / "new" / "window.json") == state


def test_without_a_usable_file_there_are_the_defaults(tmp_path: Path) -> None:
    assert read_window_state(tmp_path / "window.json") == WindowState()
    (tmp_path / "window.json").write_text("[")
    assert read_window_state(tmp_path / "window.json") == WindowState()


def test_a_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_window_state(WindowState(), tmp_path / "file" / "window.json")
    assert read_window_state(tmp_path / "window.json") == WindowState()
