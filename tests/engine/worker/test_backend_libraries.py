"""Engines whose backends are libraries of their own, as in llama.cpp's archives: the worker loads them."""

import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from llama_cpp import llama_cpp

from qwendesk.engine.worker import devices


@pytest.mark.skipif(sys.platform == "win32", reason="there the functions are found in libraries opened by name")
@pytest.mark.parametrize("n_devices", [0, 1])
def test_backends_are_loaded_from_the_engines_folder_if_none_is_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_devices: int
) -> None:
    library = MagicMock()
    library.ggml_backend_dev_count.return_value = n_devices
    monkeypatch.setattr(llama_cpp, "_lib", library)
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    devices.ggml.__wrapped__()
    calls = library.ggml_backend_load_all_from_path.call_args_list
    assert [call.args for call in calls] == ([] if n_devices else [(str(tmp_path).encode(),)])
