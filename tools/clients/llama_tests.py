"""llama.cpp's own tests of its server ask QwenDesk's: `python -m tools.clients.llama_tests [--source FOLDER]`.

The tests are those of the engine's source, which is downloaded unless --source names an unpacked one. Their server is
replaced by `qwendesk serve` with the demo model, their model's thinking is off, and they get the key. Only tests run
that ask for what an API promises; most of the others know words of their own model, or options of their own server.
Exit 1 if one fails. Needs a network.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.served import Served, served
from qwendesk.core import paths
from tools.clients.install import FOLDER, NotInstalled, install_from_pypi, python_of_clients
from tools.setup.cuda_build import keep_source
from tools.setup.project import engine_version

_PACKAGES = ("openai", "requests", "wget", "filelock", "numpy", "pytest", "pytest-timeout")
_TESTS: Final = {
    "test_chat_completion.py": (
        "test_completion_with_response_format", "test_completion_with_json_schema", "test_completion_with_grammar",
        "test_completion_with_invalid_grammar", "test_invalid_chat_completion_req", "test_logprobs",
    ),
    "test_compat_anthropic.py": (),
    "test_security.py": ("test_incorrect_api_key", "test_openai_library_correct_api_key", "test_local_media_file"),
}  # fmt: skip
"""The tests that apply by file; all of a file if none are named."""
_DIFFERENT: Final = {
    "test_chat_completion.py::test_invalid_chat_completion_req[messages7]": "two answers in a row are read",
    "test_compat_anthropic.py::test_anthropic_empty_messages": "refused, as by Anthropic",
    "test_compat_anthropic.py::test_anthropic_tool_result_with_image": "the demo model sees, theirs doesn't",
    "test_compat_anthropic.py::test_anthropic_vision_format_accepted": "the demo model sees, theirs doesn't",
    "test_compat_anthropic.py::test_anthropic_vision_base64_with_multimodal_model": "downloads another model",
    "test_compat_anthropic.py::test_anthropic_thinking_history_in_template": "asks /apply-template",
    "test_security.py::test_local_media_file[../../../tools-file://mtmd/test-1.jpeg-True]": "no files are read",
    "test_security.py::test_local_media_file[../../../tools-file:////mtmd//test-1.jpeg-True]": "no files are read",
}
"""Tests that are left out, and why."""
_CONFTEST = """
import openai
import requests
import utils

URL, KEY = {url!r}, {key!r}
utils.ServerPreset.load_all = staticmethod(lambda: None)
utils.ServerProcess.stop = lambda self: utils.server_instances.discard(self)


def start(self, timeout_seconds=0):
    self.server_host, port = URL.removeprefix("http://").split(":")
    self.server_port = int(port)
    utils.server_instances.add(self)


def request(self, method, url, **named):
    headers = {{"Authorization": "Bearer " + KEY, **(named.get("headers") or {{}})}}
    if isinstance(named.get("json"), dict) and "chat/completions" in url:
        named["json"] = {{"reasoning_effort": "none", **named["json"]}}
    return plain_request(self, method, url, **{{**named, "headers": headers}})


def client(self, *arguments, **named):
    plain_client(self, *arguments, **{{**named, "api_key": KEY}})


plain_request, requests.Session.request = requests.Session.request, request
plain_client, openai.OpenAI.__init__ = openai.OpenAI.__init__, client
utils.ServerProcess.start = start
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.clients.llama_tests", description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, help="the unpacked source of llama-cpp-python")
    source = parser.parse_args().source
    try:
        install_from_pypi(*_PACKAGES)
    except NotInstalled as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 0
    source = source or keep_source(FOLDER / "engine-source", engine_version(), Path(sys.executable), lambda _line: None)
    with tempfile.TemporaryDirectory(prefix="llama-tests-") as folder:
        tests = Path(folder, "tests")
        shutil.copytree(source / "vendor/llama.cpp/tools/server/tests", tests)
        with served(paths.demo_model(), "--waiting", "64", load=("n_ctx=2048",)) as server:
            return run(tests, server)


def run(tests: Path, server: Served) -> int:
    """Run the tests that apply, and return pytest's status."""
    conftest = tests / "conftest.py"
    ours = _CONFTEST.format(url=server.url, key=server.keys[0])
    conftest.write_text(conftest.read_text(encoding="utf-8") + ours, encoding="utf-8")
    chosen = [f"unit/{file}::{name}" for file, names in _TESTS.items() for name in names]
    chosen += [f"unit/{file}" for file, names in _TESTS.items() if not names]
    left_out = [f"--deselect=unit/{name}" for name in _DIFFERENT]
    options = ["-q", "-p", "no:cacheprovider", "--timeout", "120", "--tb", "short", *left_out, *chosen]
    return subprocess.run([python_of_clients(), "-m", "pytest", *options], cwd=tests, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
