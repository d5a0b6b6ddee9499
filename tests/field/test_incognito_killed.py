"""Nothing of an incognito chat is on the disk after the app was killed, whenever that was."""

import contextlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from PIL import Image

from tests.field.grid import SERVER, Kind, Way, case
from tests.field.incognito_run import CHANGED, DRAFT, QUESTION
from tests.user_folders import user_variables

KILLED = Kind(
    "A killed app leaves something of an incognito chat on the disk",
    {
        Way.CLI: "qwendesk ask keeps no chats at all",
        **dict.fromkeys(SERVER, "the server keeps no chats at all"),
        Way.MCP: "its processes get what a tool is called with, and keep nothing of it",
        Way.IMPORT: "what is imported is to be saved",
    },
)
FOUND = "found by killing it, November 2026"
ROOT = Path(__file__).resolve().parents[2]
ATTACHED = "The green gecko 5093 signs with invisible ink."
_SIDE = 300
LEAVES_THE_CHAT = ("when another chat was opened", "when it was deleted")
"""Moments after which the draft is one of a usual chat."""


def killed_at(moment: str, folder: Path) -> tuple[Path, str, bytes]:
    """Kill the window and all of its processes at a moment; return the user's folder, the answer, and the picture."""
    user, pixels = folder / "user", random.Random(5).randbytes(3 * _SIDE * _SIDE)
    environment = os.environ | user_variables(user) | {"QT_QPA_PLATFORM": "offscreen"}
    for name in ("TMPDIR", "TMP", "TEMP"):
        environment[name] = str(user / "temporary")
    for path in {Path(value) for value in environment.values() if value.startswith(str(user))}:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    Image.frombytes("RGB", (_SIDE, _SIDE), pixels).save(folder / "picture.png")
    folder.joinpath("gecko.txt").write_text(ATTACHED)
    arguments = [moment, str(folder / "picture.png"), str(folder / "gecko.txt")]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.field.incognito_run", *arguments],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
        finally:
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for each in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
    psutil.wait_procs(family, timeout=60)
    return user, json.loads(said)["answer"], pixels


@case(KILLED, Way.WINDOW, report=FOUND, before="held")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "moment",
    [
        "while it is written", "while it is answered", "when it is answered", "when its question was changed",
        "when it was branched", "when another chat was opened", "when it was deleted",
    ],
)  # fmt: skip
def test_no_file_has_anything_of_it(tmp_path: Path, moment: str) -> None:
    user, answer, pixels = killed_at(moment, tmp_path)

    texts = [QUESTION, CHANGED, ATTACHED, "gecko.txt", "pelican", "ocelot", *([answer] if answer else [])]
    if moment not in LEAVES_THE_CHAT:
        texts += [DRAFT, "walrus"]
    secrets = [text.encode(kind) for text in texts for kind in ("utf-8", "utf-16-le")]
    secrets += [pixels[:48], b"\x89PNG\r\n", b"\xff\xd8\xff\xe0", b"WEBPVP8"]
    files = [path for path in user.rglob("*") if path.is_file()]
    assert any(path.name == "chats.db" for path in files), "it is the folder that the app has used"
    found = {(path.name, secret) for path in files for secret in secrets if secret in path.read_bytes()}
    assert found == set()
    assert [path.name for path in files if path.suffix == ".state"] == []


@case(KILLED, Way.WINDOW, report=FOUND, before="held")
@pytest.mark.timeout(300)
def test_the_search_finds_what_a_usual_chat_leaves(tmp_path: Path) -> None:
    """Or the other case could not fail."""
    user, answer, _pixels = killed_at("as a usual chat", tmp_path)
    content = b"".join(path.read_bytes() for path in user.rglob("*") if path.is_file())
    for text in (QUESTION, DRAFT, ATTACHED, answer, "gecko.txt"):
        assert text.encode() in content, text
    assert b"\x89PNG\r\n" in content
