"""Only the Python side of llama-cpp-python: its libraries come in engine folders, once for each kind of processor."""

from PyInstaller.utils.hooks import copy_metadata

datas = copy_metadata("llama_cpp_python")
binaries: list[tuple[str, str]] = []
hiddenimports = ["llama_cpp.llama_cpp", "llama_cpp.mtmd_cpp"]
# The package imports its HTTP server and these helpers only when asked; the worker uses the C API alone.
excludedimports = ["llama_cpp.server", "fastapi", "uvicorn", "transformers", "torch"]
