"""The tool in a real sandbox, and how it words what came of a script."""

import json

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import CallRecord, ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.confinement.confined_run import LeftFile, Outcome
from qwendesk.toolbox.confinement.sandbox import Sandbox
from qwendesk.toolbox.run_python import run_python, told
from qwendesk.toolbox.service import ToolService
from tests.toolbox.test_service import asked


async def record_of(sandbox: Sandbox, code: str) -> CallRecord:
    async def find() -> Sandbox | str:
        return sandbox

    service = ToolService([run_python(find)])
    where = CallContext("a", ChatSettings(tools=("run_python",)))
    return await asked(service, ToolCall("run_python", json.dumps({"code": code})), where, "once")


async def test_script_that_was_allowed_runs(sandbox: Sandbox) -> None:
    record = await record_of(sandbox, "open('table.csv', 'w').write('a,b')\nprint(sum(range(1000)))")
    assert record.error == ""
    assert record.result == "499500\n\nIt wrote these files, which are gone now: table.csv (3 bytes)."


async def test_error_in_a_script_is_an_error_of_the_call(sandbox: Sandbox) -> None:
    record = await record_of(sandbox, "print('begun')\n[][1]")
    assert record.result == ""
    assert record.error.startswith("begun\n")
    assert "IndexError: list index out of range\n\nThe script ended with exit code 1." in record.error


def test_end_of_a_script_is_said() -> None:
    assert told(Outcome("", 0), 1000) == "The script printed nothing."
    assert told(Outcome("a", None, stopped_for="time"), 1000) == "a\n\nThe script took too long and was stopped."
    assert told(Outcome("", None), 1000).endswith("The script ended all processes, its own as well.")
    assert told(Outcome("", -11), 1000).endswith("The script was ended by SIGSEGV.")
    assert told(Outcome("", -24), 1000).endswith("The script was ended by the limit on processor time.")
    assert told(Outcome("", -1000), 1000).endswith("The script was ended by signal 1000."), "forged by the script"


def test_beginning_and_end_of_a_long_output_are_kept() -> None:
    text = told(Outcome("a" * 5000 + "z" * 5000, 0), 2000)
    assert len(text) <= 2000
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "(8,600 characters left out)" in text


def test_many_files_are_counted() -> None:
    files = tuple(LeftFile(f"{number}.txt", 1) for number in range(30))
    assert told(Outcome("a", 0, files), 1000).endswith("19.txt (1 byte) and 10 more.")
