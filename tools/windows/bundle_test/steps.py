"""The steps of a user's first days: install, ask, open files, mishaps, another engine, update, remove."""

import hashlib
import json
import shutil
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from qwendesk import __version__
from tests.hub.hub_server import running_hub
from tools.windows.bundle_test.desktop import LONGEST_S, Desktop, check
from tools.windows.bundle_test.records import (
    Answer,
    command_for,
    failure_count,
    finished_answers,
    has_attachment,
    loaded_engine,
    question_count,
    registry_value,
)

_SILENT = ("/VERYSILENT", "/SUPPRESSMSGBOXES", "/NORESTART")
_PROGRAMS = r"C:\users\root\AppData\Local\Programs\QwenDesk"
_SHORTCUT = r"C:\users\root\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\QwenDesk\QwenDesk.lnk"
OPEN_KEY = r"HKCU\Software\Classes\QwenDesk.gguf\shell\open\command"
_APPS = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall"
UNINSTALL_KEY = _APPS + r"\{6E0E3B1C-6A37-4B0B-9E0B-2C3E52F9D7A1}_is1"
"""The installer's AppId, as packaging/windows/qwendesk.iss has it."""
_APP, _ENGINE, _COMMAND = "QwenDesk.exe", "QwenDeskEngine.exe", "QwenDeskCommand.exe"
_QUESTION = ("What is VRAM spill?", "slow ram")
_PICTURE_QUESTION = ("What is in this picture?", "red")
_NEXT_QUESTION = ("What is a quant?", "")
"""What is asked, and a word of the demo's answer in lower case."""
_SEND_S = 3.0
"""After this time a click or a key shows what it did, or it is done again."""
_OTHER_ENGINE = "cpu-sse42"
_PORT = 8765
"""The server's usual port."""
_NEWER_FORMAT = 999
"""A format of the chats that no version has."""
_LOAD_IT = (400, 150)
"""Where the button of the notice that offers a model lies in the window, in pixels."""


class Trial:
    """One user's drive C: from the first installation to the removal."""

    FIRST_STEPS = 3
    """Without these nothing can follow."""

    def __init__(self, desktop: Desktop, older: Path, current: Path) -> None:
        """`older` and `current` are the two installers."""
        self.desktop = desktop
        self._older, self._current = older, current
        local = desktop.home / "AppData" / "Local"
        self._data = local / "QwenDesk"
        self._chats = self._data / "chats.db"
        self._installed = local / "Programs" / "QwenDesk"
        self._older_format = 0

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """Return the steps with their titles. A step returns what is worth a word, or raises Failed."""
        return [
            ("Install an older version silently", self._install),
            ("Start it by its shortcut", self._start),
            ("Ask the demo in the window", self._ask_demo),
            ("A second start hands over a picture", self._hand_over_picture),
            ("Open a .gguf file by its association", self._open_model),
            ("QwenDeskCommand doctor", self._doctor),
            ("Kill the engine and ask again", self._kill_engine),
            ("Kill the app and start it again", self._kill_app),
            ("Close it; its tour calls a tool", self._tour),
            ("Download a model from a made-up Hub", self._download),
            ("Start it with another engine and its server", self._change_engine),
            ("Another program asks the server", self._ask_server),
            ("Update it silently", self._update),
            ("Start it after the update", self._start_updated),
            ("An older version finds chats of a newer one", self._find_newer_chats),
            ("Update it again", self._update_again),
            ("Remove it silently", self._remove),
        ]

    def _install(self) -> str:
        self._set_up(self._older)
        check(self._version() == self._older.name.split("-")[1], f"Windows' list of apps says {self._version()}")
        check(registry_value(self._registry(OPEN_KEY)) is not None, "the file type .gguf has no command")
        return f"{sum(path.stat().st_size for path in self._installed.rglob('*') if path.is_file()) / 2**20:.0f} MiB"

    def _set_up(self, installer: Path) -> None:
        done = self.desktop.run("Z:" + str(installer).replace("/", "\\"), *_SILENT)
        check(done.returncode == 0, f"the installer ended with {done.returncode}: {done.stdout}{done.stderr}")
        for program in (_APP, _ENGINE, _COMMAND, "unins000.exe"):
            check((self._installed / program).is_file(), f"{program} is not there")

    def _start(self) -> str:
        self.desktop.start("start", _SHORTCUT)
        self.desktop.wait_for_window()
        return ""

    def _ask_demo(self) -> str:
        self.desktop.picture("first-start")
        self.desktop.key("ctrl+shift+p")
        self.desktop.type("Load the built-in demo")
        self.desktop.key("Return")
        self.desktop.wait("the engine", lambda: bool(self._engine_in_use()))
        return f"{self._ask(*_QUESTION)} with {self._engine_in_use()}"

    def _hand_over_picture(self) -> str:
        picture = self.desktop.home / "Pictures" / "Kreis \u8bd5 \u00e4.png"
        picture.parent.mkdir(exist_ok=True)
        drawing = ["-size", "256x256", "xc:#f6f6f6", "-fill", "#d62424", "-draw", "circle 128,128 128,36"]
        subprocess.run(["convert", *drawing, str(picture)], check=True)
        done = self.desktop.run(rf"{_PROGRAMS}\{_APP}", self._for_windows(picture))
        check(done.returncode == 0, f"the second start ended with {done.returncode}")
        check(len(self.desktop.processes(_APP)) == 1, "two windows run")
        self.desktop.wait("the picture in the message", lambda: has_attachment(self._chats))
        return self._ask(*_PICTURE_QUESTION)

    def _open_model(self) -> str:
        model = self.desktop.home / "Documents" / "Modell \u00e4 1.gguf"
        model.parent.mkdir(exist_ok=True)
        shutil.copy(next(self._installed.glob("_internal/resources/demo/qwendesk-demo*.gguf")), model)
        template = registry_value(self._registry(OPEN_KEY))
        check(template is not None, "the file type .gguf has no command")
        program, *arguments = command_for(template or "", self._for_windows(model))
        done = self.desktop.run(program, *arguments)
        check(done.returncode == 0, f"the command ended with {done.returncode}")
        before = self.desktop.processes(_ENGINE)

        def is_loaded() -> bool:
            self.desktop.click(*_LOAD_IT)
            time.sleep(_SEND_S)
            return not set(before) & set(self.desktop.processes(_ENGINE))

        time.sleep(_SEND_S)
        self.desktop.picture("open-model")
        self.desktop.wait("the other model", is_loaded)
        # It has no vision file beside it, so it refuses a chat with a picture.
        self.desktop.key("ctrl+n")
        answer = self._ask(*_NEXT_QUESTION)
        check(any(model.name in maps for maps in self._engine_maps()), f"the engine has not loaded {model.name}")
        return answer

    def _doctor(self) -> str:
        done = self.desktop.run(rf"{_PROGRAMS}\{_COMMAND}", "doctor", "--json")
        check(done.returncode == 0, f"it ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        said = json.loads(done.stdout)
        tests = [test["name"] for test in said["self_test"] if not test["passed"]]
        check(not tests, f"its tests failed: {', '.join(tests)}")
        return f"release {said['versions']['qwendesk']}, {len(said['self_test'])} tests passed"

    def _kill_engine(self) -> str:
        before = self._engine_in_use()
        self._kill(_ENGINE)
        time.sleep(_SEND_S)
        self.desktop.picture("engine-killed")
        return f"{self._ask(*_NEXT_QUESTION)} with {before}"

    def _kill_app(self) -> str:
        before = self._answers()
        self._kill(_APP)
        self.desktop.wait_until_gone(_ENGINE)
        self.desktop.wait("the end of the window", lambda: not self.desktop.windows())
        self._start()
        self._expect(before)
        return f"{len(before)} answers kept"

    def _tour(self) -> str:
        """Have the demo answer three questions in a window of its own, one by a tool and one about a picture."""
        self._quit()
        picture = self.desktop.home / "tour.png"
        done = self.desktop.run(rf"{_PROGRAMS}\{_APP}", "--demo-tour", "--screenshot", self._for_windows(picture))
        check(done.returncode == 0, f"it ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        check(picture.is_file(), "it has left no screenshot")
        self.desktop.keep_picture(picture, "tour")
        return ""

    def _download(self) -> str:
        demo = next(self._installed.glob("_internal/resources/demo/qwendesk-demo*.gguf")).read_bytes()
        with running_hub() as hub:
            hub.add("made-up/Demo-GGUF", "made-up-demo.gguf", demo)
            self._choose(hub_endpoint=hub.endpoint)
            file = "made-up/Demo-GGUF/made-up-demo.gguf"
            done = self.desktop.run(rf"{_PROGRAMS}\{_COMMAND}", "models", "get", file, "--no-mmproj")
            self._choose(hub_endpoint="")
        check(done.returncode == 0, f"it ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
        found = list(self.desktop.home.rglob("made-up-demo.gguf"))
        check(any(path.read_bytes() == demo for path in found), "the file is not there, or differs")
        return f"{len(demo) / 2**20:.0f} MiB"

    def _choose(self, **settings: object) -> None:
        """Change the file of settings while the app doesn't run."""
        file = self._data / "settings.json"
        chosen = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        file.write_text(json.dumps({**chosen, **settings}), encoding="utf-8")

    def _change_engine(self) -> str:
        self._choose(engine=_OTHER_ENGINE, serve=True)
        self._start()
        self._ask(*_QUESTION)
        check(self._engine_in_use() == _OTHER_ENGINE, f"the engine is {self._engine_in_use()}")
        return _OTHER_ENGINE

    def _ask_server(self) -> str:
        key = (self._data / "server.key").read_text(encoding="utf-8").split()[0]
        question = {"messages": [{"role": "user", "content": _QUESTION[0]}], "max_tokens": 60}
        request = urllib.request.Request(
            f"http://127.0.0.1:{_PORT}/v1/chat/completions",
            json.dumps(question).encode(),
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=LONGEST_S) as response:
            answer = json.load(response)["choices"][0]["message"]["content"]
        check(_QUESTION[1] in answer.lower(), f"the answer has no word {_QUESTION[1]}: {answer}")
        return f'"{answer}"'

    def _update(self) -> str:
        self._quit()
        (self._installed / "_internal" / "left from an older version.txt").touch()
        self._set_up(self._current)
        check(self._version() == __version__, f"Windows' list of apps says {self._version()}")
        left = list(self._installed.rglob("left from*"))
        check(not left, "files of the older version are still there")
        return f"{self._older.name.split('-')[1]} to {__version__}"

    def _start_updated(self) -> str:
        before = self._answers()
        self._start()
        self._expect(before)
        self._ask(*_QUESTION)
        return f"{len(before)} answers kept"

    def _find_newer_chats(self) -> str:
        """Install the older version over chats that a newer one has saved: they are left as they are."""
        self._quit()
        self._older_format = self._set_format(_NEWER_FORMAT)
        before = hashlib.sha256(self._chats.read_bytes()).hexdigest()
        self._set_up(self._older)
        self._start()
        time.sleep(_SEND_S)
        self.desktop.picture("newer-chats")
        self._quit()
        check(hashlib.sha256(self._chats.read_bytes()).hexdigest() == before, "the newer chats were changed")
        return f"{self._version()} leaves them unchanged"

    def _update_again(self) -> str:
        self._set_format(self._older_format)
        before = self._answers()
        self._set_up(self._current)
        self._start()
        self._expect(before)
        return f"{len(before)} answers kept"

    def _set_format(self, number: int) -> int:
        """Write another number of the format into the chats' file, and return the one before."""
        with closing(sqlite3.connect(self._chats)) as chats:
            (before,) = chats.execute("PRAGMA user_version").fetchone()
            chats.execute(f"PRAGMA user_version = {number}")
            chats.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(before)

    def _remove(self) -> str:
        self._quit()
        before = self._answers()
        self.desktop.run(rf"{_PROGRAMS}\unins000.exe", *_SILENT[:2])
        # It works on as a copy of itself.
        self.desktop.wait("the removal", lambda: not (self._installed / _APP).exists())
        self.desktop.wait("the removal of the folder", lambda: not self._installed.exists())
        check(not self._on_drive(_SHORTCUT).exists(), "the shortcut is still there")
        check(registry_value(self._registry(OPEN_KEY)) is None, "the file type .gguf still has its command")
        check(self._version() == "", "Windows' list of apps still has it")
        check(self._answers() == before, "the chats went without a question")
        return f"{len(before)} answers are still in {self._data.name}"

    def _ask(self, question: str, word: str) -> str:
        before = len(self._answers())
        self.desktop.wait("a loaded model", lambda: any(".gguf" in maps for maps in self._engine_maps()))
        failures = failure_count(self._chats)
        self._send(question)

        def is_answered() -> bool:
            nonlocal failures
            if failure_count(self._chats) > failures:  # sent while the model was not ready yet
                failures += 1
                self._send(question)
            return len(self._answers()) > before

        self.desktop.wait("the answer", is_answered)
        answer = self._answers()[-1].text
        check(word in answer.lower(), f"the answer has no word {word}: {answer}")
        return f'"{answer}"'

    def _send(self, question: str) -> None:
        before = question_count(self._chats)
        self.desktop.activate()
        self.desktop.type(question)

        def is_sent() -> bool:
            self.desktop.key("Return")
            time.sleep(_SEND_S)
            return question_count(self._chats) > before

        self.desktop.wait("the question in the chats", is_sent)

    def _answers(self) -> list[Answer]:
        return finished_answers(self._chats)

    def _expect(self, before: list[Answer]) -> None:
        check(self._answers()[: len(before)] == before, "chats are lost")

    def _engine_in_use(self) -> str:
        return next(filter(None, map(loaded_engine, self._engine_maps())), "")

    def _engine_maps(self) -> list[str]:
        """Return what each engine process has mapped, by the files' names."""
        found = []
        for process in self.desktop.processes(_ENGINE):
            try:
                found.append(Path(f"/proc/{process}/maps").read_text(encoding="utf-8"))
            except OSError:  # it has ended
                continue
        return found

    def _quit(self) -> None:
        def is_closed() -> bool:
            self.desktop.activate()
            self.desktop.key("ctrl+q")
            time.sleep(_SEND_S)
            return not self.desktop.processes(_APP)

        self.desktop.wait("the end of the app", is_closed)
        self.desktop.wait_until_gone(_ENGINE)

    def _kill(self, program: str) -> None:
        check(bool(self.desktop.processes(program)), f"{program} does not run")
        killed = self.desktop.processes(program)
        self.desktop.run("taskkill", "/f", "/im", program)
        self.desktop.wait(f"the end of {program}", lambda: not set(killed) & set(self.desktop.processes(program)))

    def _version(self) -> str:
        return registry_value(self._registry(UNINSTALL_KEY), "DisplayVersion") or ""

    def _registry(self, key: str) -> str:
        return self.desktop.run("reg", "query", key).stdout

    def _for_windows(self, path: Path) -> str:
        return "C:\\" + str(path.relative_to(self.desktop.drive)).replace("/", "\\")

    def _on_drive(self, path: str) -> Path:
        return self.desktop.drive / path.removeprefix("C:\\").replace("\\", "/")
