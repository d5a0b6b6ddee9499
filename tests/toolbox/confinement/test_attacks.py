"""Scripts that want what they must not have. Each is run for real, and looked at from inside and from outside."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from qwendesk.toolbox.confinement.confined_run import REFUSED, run_confined
from qwendesk.toolbox.confinement.sandbox import Sandbox
from tests.toolbox.confinement.conftest import Run, confined_processes

_TRY = """
import json, os, sys
def tried(actions):
    results = {}
    for name, action in actions.items():
        try:
            action()
            results[name] = "done"
        except OSError as error:
            results[name] = error.errno
    print(json.dumps(results))
"""


async def told(run: Run, script: str) -> Any:
    """Return the JSON that a script prints, which has to end well."""
    outcome = await run(script)
    assert outcome.status == 0, outcome
    return json.loads(outcome.output)


async def test_home_folder_is_not_there(run: Run, home: Path) -> None:
    script = f"""
import json, os
found = [os.path.join(at, name) for at, _, names in os.walk("/") for name in names if name == "qwendesk-secret.txt"]
print(json.dumps([os.path.exists({str(home)!r}), os.path.exists("/home"), os.path.exists("/root"), found]))
"""
    assert await told(run, script) == [False, False, False, []]


async def test_only_the_scratch_folder_can_be_written(run: Run, tmp_path: Path) -> None:
    places = ("/", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/dev", "/dev/shm", "/proc", "/var", str(tmp_path))
    script = f"{_TRY}tried({{place: (lambda place=place: open(place + '/x', 'w')) for place in {(*places, '/tmp')!r}}})"
    results = await told(run, script)
    assert results.pop("/tmp") == "done"
    assert set(results.values()) <= {errno.EROFS, errno.ENOENT, errno.EACCES, errno.EPERM}, results
    assert not any(map(os.path.exists, (f"{place}/x" for place in places)))


async def test_folders_of_the_system_cannot_be_changed(run: Run) -> None:
    script = f"""{_TRY}
tried({{
    "remove": lambda: os.unlink("/usr/bin/env"),
    "rename": lambda: os.rename("/usr/bin/env", "/usr/bin/env2"),
    "mode": lambda: os.chmod("/usr/bin/env", 0o777),
    "folder": lambda: os.mkdir("/usr/x"),
    "link": lambda: os.symlink("/tmp", "/usr/x"),
}})
"""
    assert set((await told(run, script)).values()) <= {errno.EROFS, errno.EPERM, errno.EACCES}


async def test_network_is_not_there(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = f"""{_TRY}
import socket
tried({{
    "server": lambda: socket.create_connection(("127.0.0.1", {port}), timeout=5),
    "names": lambda: socket.getaddrinfo("example.org", 80),
    "unix": lambda: socket.socket(socket.AF_UNIX),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "host of a virtual machine": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "within": lambda: socket.socketpair(),
}})
"""
        results = await told(run, script)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert results.pop("within") == "done"
    assert results.pop("names") not in ("done", 0)
    assert set(results.values()) == {errno.EPERM}


async def test_network_has_only_the_loopback_device(run: Run) -> None:
    """Even if a socket could be made, it would lead nowhere."""
    lines = await told(run, "import json; print(json.dumps(open('/proc/net/dev').read().splitlines()[2:]))")
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


async def test_other_processes_cannot_be_seen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWENDESK_SECRET", "the-secret-word")
    script = """
import json, os
pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
texts = []
for pid in pids:
    for name in ("environ", "cmdline", "maps"):
        try:
            texts.append(open(f"/proc/{pid}/{name}").read())
        except OSError:
            pass
print(json.dumps([len(pids), any("the-secret-word" in text for text in texts), sorted(os.environ)]))
"""
    n_processes, sees_secret, variables = await told(run, script)
    assert n_processes <= 3
    assert not sees_secret
    assert "QWENDESK_SECRET" not in variables
    assert "HOME" in variables


async def test_first_process_leads_out_nowhere(run: Run, home: Path) -> None:
    script = f"""{_TRY}
tried({{
    "root": lambda: open("/proc/1/root{home}/qwendesk-secret.txt"),
    "cwd": lambda: open("/proc/1/cwd/../..{home}/qwendesk-secret.txt"),
    "kill": lambda: os.kill(1, 9),
    "alive": lambda: os.stat("/proc/1"),
}})
"""
    results = await told(run, script)
    assert results.pop("alive") == "done"
    results.pop("kill")  # the kernel ignores it
    assert "done" not in results.values()


async def test_processes_outside_cannot_be_killed(run: Run) -> None:
    ours = psutil.Process().pid
    script = f"{_TRY}tried({{'ours': lambda: os.kill({ours}, 9), 'group': lambda: os.killpg({os.getpgid(0)}, 9)}})"
    assert set((await told(run, script)).values()) == {errno.ESRCH}


async def test_script_that_kills_its_supervisor_ends_itself(run: Run) -> None:
    outcome = await run("import os, time\nos.kill(os.getppid(), 9)\nsignal.pause()")
    assert (outcome.status, outcome.stopped_for, outcome.has_started) == (None, "", True)


async def test_processes_in_the_background_end_with_the_script(run: Run) -> None:
    script = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(100):
            try:
                os.close(fd)
            except OSError:
                pass
        signal.pause()
    os._exit(0)
os.wait()
print("over")
"""
    outcome = await run(script)
    assert (outcome.output, outcome.status) == ("over\n", 0)


async def test_sandbox_ends_with_the_app(sandbox: Sandbox) -> None:
    """Also when the app has no time to end anything."""
    app = f"""
import asyncio
from qwendesk.toolbox.confinement.confined_run import run_confined
from qwendesk.toolbox.confinement.sandbox import Sandbox
asyncio.run(run_confined("import signal; signal.pause()", Sandbox({sandbox.bwrap!r}, {sandbox.python!r})))
"""
    with subprocess.Popen([sys.executable, "-c", app]) as process:  # noqa: ASYNC220
        watched = psutil.Process(process.pid)
        while not any("script.py" in each.cmdline() for each in _living(watched.children(recursive=True))):
            assert process.poll() is None
        inside = watched.children(recursive=True)
        process.kill()
    psutil.wait_procs(inside, timeout=60)
    assert not _living(inside)


def _living(processes: list[psutil.Process]) -> list[psutil.Process]:
    def lives(process: psutil.Process) -> bool:
        try:
            return bool(process.status() != psutil.STATUS_ZOMBIE and process.cmdline())
        except psutil.NoSuchProcess:
            return False

    return [process for process in processes if lives(process)]


async def test_refused_system_calls_fail(run: Run) -> None:
    script = f"""
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
results = {{}}
for name, number in {dict(REFUSED)!r}.items():
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    results[name] = ctypes.get_errno()
print(json.dumps(results))
"""
    assert await told(run, script) == dict.fromkeys(REFUSED, errno.EPERM)


async def test_new_namespaces_and_unknown_calls_fail(run: Run) -> None:
    script = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    libc.syscall(*arguments)
    return ctypes.get_errno()
print(json.dumps([call(56, flag | 17, 0, 0, 0, 0) for flag in (1 << 17, 1 << 25, 1 << 28, 1 << 29, 1 << 30)]
    + [call(435, 0, 0), call(463, 0, 0), call(100000), call((1 << 30) + 39)]))
"""
    assert await told(run, script) == [errno.EPERM] * 5 + [errno.ENOSYS] * 4


async def test_calls_in_the_manner_of_32_bits_end_the_script(run: Run) -> None:
    script = r"""
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid of i386); int 0x80; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
    outcome = await run(script)
    assert outcome.status in (-signal.SIGSYS, -signal.SIGSEGV), outcome


async def test_terminal_cannot_be_typed_into(run: Run) -> None:
    script = f"""{_TRY}
import fcntl
master, terminal = os.openpty()
tried({{
    "typing": lambda: fcntl.ioctl(terminal, 0x5412, b"x"),
    "pasting": lambda: fcntl.ioctl(terminal, 0x541C, b"x"),
    "typing, with more bits": lambda: fcntl.ioctl(terminal, 0x5412 - (1 << 32) + (1 << 32), b"x"),
    "terminal": lambda: open("/dev/tty"),
}})
"""
    results = await told(run, script)
    assert results.pop("terminal") in (errno.ENXIO, errno.EIO)
    assert set(results.values()) == {errno.EPERM}


async def test_script_has_no_rights_and_gains_none(run: Run) -> None:
    script = """
import json, os
told = []
for pid in (1, os.getppid(), os.getpid()):
    lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    told.append([lines[name].split()[0] for name in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")])
print(json.dumps(told))
"""
    for *rights, no_new, filtered in await told(run, script):
        assert {int(each, 16) for each in rights} == {0}
        assert (no_new, filtered) == ("1", "2")


async def test_process_of_bubblewrap_inside_ends_also_when_it_is_taken_over(sandbox: Sandbox) -> None:
    """A script can change the memory of bubblewrap's own process inside, which has no more rights than the script."""
    script = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
print(libc.prctl(1, 0), ctypes.get_errno())
memory = os.open("/proc/1/mem", os.O_RDWR)
for line in open("/proc/1/maps"):
    place, rights = line.split()[:2]
    first, last = (int(each, 16) for each in place.split("-"))
    if "x" in rights and "[v" not in line:
        os.pwrite(memory, bytes.fromhex("ebfe") * ((last - first) // 2), first)  # jmp $
print("taken", flush=True)
signal.pause()
"""
    outcome = await run_confined(script, sandbox, wall_s=5)
    assert outcome.output == f"-1 {errno.EPERM}\ntaken\n"
    assert outcome.stopped_for == "time"
    assert not confined_processes()


async def test_no_disks_or_other_devices(run: Run) -> None:
    devices = await told(run, "import json, os; print(json.dumps(sorted(os.listdir('/dev'))))")
    expected = {"core", "console", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout"}
    assert set(devices) <= expected | {"tty", "urandom", "zero"}


async def test_links_in_the_scratch_folder_are_not_followed(run: Run) -> None:
    script = """
import os
os.symlink("/usr/bin/env", "program.txt")
os.symlink("/", "everything")
os.symlink("loop", "loop")
os.link("/tmp/notes.txt", "same.txt") if open("notes.txt", "w").write("x") else None
os.mkfifo("pipe.txt")
os.mkdir("closed")
open("closed/inside.txt", "w").write("12")
os.chmod("closed", 0)
"""
    outcome = await run(script)
    assert outcome.status == 0, outcome
    assert [(file.path, file.n_bytes) for file in outcome.files] == [("notes.txt", 1), ("same.txt", 1)]


async def test_names_of_files_may_be_anything(run: Run) -> None:
    script = r"""
import os
for name in (b"\xff\xfe.txt", "emoji \U0001f600.txt", "line\nbreak.txt", "a" * 250):
    open(name, "w").close()
"""
    outcome = await run(script)
    assert outcome.status == 0, outcome
    assert len(outcome.files) == 4


async def test_script_may_write_anything_to_the_app(run: Run) -> None:
    """The report of the supervisor comes from inside, so it may be forged: nothing depends on it."""
    script = """
import os
parent = os.getppid()
for fd in os.listdir(f"/proc/{parent}/fd"):
    try:
        with open(f"/proc/{parent}/fd/{fd}", "wb", 0) as file:
            file.write(b'[[["\\xff' * 100_000)
    except OSError:
        pass
"""
    outcome = await run(script)
    assert outcome.stopped_for in ("", "output")
