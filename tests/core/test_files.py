"""Small files are replaced whole."""

import pytest

from qwendesk.core.files import write_whole


def test_a_file_and_its_folder_are_made_and_replaced(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_nothing_is_left_when_it_fails(tmp_path):
    folder = tmp_path / "file"
    folder.mkdir()
    (folder / "x").touch()
    with pytest.raises(OSError, match="file"):
        write_whole(folder, b"one")
    assert list(tmp_path.iterdir()) == [folder]
