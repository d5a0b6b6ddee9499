"""Runs one script in the sandbox, watches what it takes, and ends everything that it has started. Linux only.

Namespaces already keep a script from everything that is the user's. The filter keeps it from the parts of the kernel
in which ways out of namespaces have been found, and from memory that no limit counts. What it refuses is what no
ordinary script needs. Numbers: arch/x86/entry/syscalls/syscall_64.tbl of Linux 6.12. Form of the program: struct
sock_filter of linux/filter.h, on struct seccomp_data of linux/seccomp.h.

Linux only.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import platform
import signal
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from qwendesk.core import paths
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB
from qwendesk.toolbox.confinement.sandbox import (
    MEMORY_BYTES,
    MOST_FILES,
    PROCESSES,
    SCRATCH,
    Sandbox,
    command,
    find_bwrap,
    find_python,
)

# How long a script may run: less than any tool may, so that what it wrote by then is kept.
WALL_S = 50.0
# Bytes. A script that writes more is stopped.
MOST_OUTPUT = 1_000_000
# Between two looks at what the script takes.
_PAUSE_S = 0.1
# When the PC has less memory than this, a script is stopped, whatever took it.
_LEFT_FOR_OTHERS = 512 * MIB
_READ_BYTES = 65_536
# How many looks in a row may fail; the first ones do, while the sandbox is made.
_MOST_UNSEEN = 20
# How long to wait for the end of killed processes. On a busy PC the system takes seconds to free their memory.
_GONE_S = 60.0

# Why a script was stopped: which limit it reached, or that the system does not tell what it takes.
Reason = Literal["", "time", "memory", "files", "output", "unwatched"]


class LeftFile(msgspec.Struct, frozen=True, array_like=True):
    """A file in the scratch folder at the end."""

    path: str
    n_bytes: int


class _Report(msgspec.Struct, frozen=True):
    """The supervisor's report when the script has ended. The script may have written it, too."""

    status: int
    files: tuple[LeftFile, ...]


class Outcome(msgspec.Struct, frozen=True):
    """How a script ended."""

    output: str
    """Its output, errors included. Without a start, the message of bubblewrap."""
    status: int | None = None
    """Its exit code, negative for a signal; None if it was stopped, or ended its supervisor."""
    files: tuple[LeftFile, ...] = ()
    stopped_for: Reason = ""
    has_started: bool = False


async def run_confined(script: str, sandbox: Sandbox, *, wall_s: float = WALL_S) -> Outcome:
    """Run a script to its end or to a limit. When this returns or is cancelled, nothing of it runs any more.

    Call it on the thread of the event loop: bubblewrap ends with the thread that started it. Raise OSError if it can't
    be started.
    """
    with contextlib.ExitStack() as opened:
        with contextlib.ExitStack() as inherited:  # closed here once bubblewrap has them
            report, report_fd = await _open_pipe(opened, inherited)
            info, info_fd = await _open_pipe(opened, inherited)
            script_fd, filter_fd = (_memory_file(content, inherited) for content in (script.encode(), syscall_filter()))
            process = await asyncio.create_subprocess_exec(
                *command(sandbox, script_fd=script_fd, filter_fd=filter_fd, report_fd=report_fd, info_fd=info_fd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={},
                pass_fds=(script_fd, filter_fd, report_fd, info_fd),
            )
        return await _ConfinedRun(process, report, info).finish(wall_s)


class _ConfinedRun:
    """A script that runs, or is about to."""

    def __init__(
        self, process: asyncio.subprocess.Process, report: asyncio.StreamReader, info: asyncio.StreamReader
    ) -> None:
        self._process, self._report, self._info = process, report, info
        self._stopped_for: Reason = ""
        self._first: int | None = None
        """A file descriptor (pidfd) of the first process inside, with which all others end."""

    async def finish(self, wall_s: float) -> Outcome:
        assert self._process.stdout is not None
        timer = asyncio.get_running_loop().call_later(wall_s, self._stop, "time")
        finding = asyncio.create_task(self._find_first())
        watching = asyncio.create_task(self._watch(finding))
        try:
            output, report, _ = await asyncio.gather(
                self._read(self._process.stdout), self._read(self._report), self._wait_for_bwrap(finding)
            )
        finally:
            timer.cancel()
            watching.cancel()
            self._kill()
            await self._wait_until_gone(finding)
        started, _, rest = report.partition(b"\n")
        told = _decoded(rest)
        return Outcome(
            output.decode("utf-8", "replace"),
            None if told is None or self._stopped_for else told.status,
            () if told is None else told.files,
            self._stopped_for,
            has_started=started == b"started",
        )

    async def _wait_for_bwrap(self, finding: asyncio.Task[int]) -> None:
        """Wait until bubblewrap ends, and kill what has outlived it: else its output is awaited for ever.

        Whoever runs out of memory, or a user, may kill bubblewrap alone.
        """
        await self._process.wait()
        await asyncio.shield(finding)
        self._kill()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """Return what comes out up to the limit; stop the script if there is more."""
        content = bytearray()
        while piece := await reader.read(_READ_BYTES):
            content += piece[: MOST_OUTPUT - len(content)]
            if len(content) >= MOST_OUTPUT:
                self._stop("output")
        return bytes(content)

    async def _find_first(self) -> int:
        """Return the number of the first process inside; 0 if bubblewrap has ended before, and says why."""
        pid = int(json.loads(await self._info.read(-1) or "{}").get("child-pid", 0))
        if pid:
            with contextlib.suppress(ProcessLookupError):
                self._first = os.pidfd_open(pid)
        return pid

    async def _watch(self, finding: asyncio.Task[int]) -> None:
        """Stop the script when all that it has started takes too much, or when that can't be seen."""
        pid, n_unseen = await asyncio.shield(finding), 0
        while pid and n_unseen < _MOST_UNSEEN:
            try:
                self._stop(_exceeded(Path(f"/proc/{pid}/root")))
                n_unseen = 0
            except PermissionError:
                n_unseen += 1
            except OSError:
                pass  # it is not there yet, or not any more
            await asyncio.sleep(_PAUSE_S)
        self._stop("unwatched" if pid else "")

    def _stop(self, reason: Reason) -> None:
        if reason and not self._stopped_for:
            if self._process.returncode is None:
                self._stopped_for = reason
            self._kill()

    def _kill(self) -> None:
        """End bubblewrap, and the first process inside, with which all others end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        if self._first is not None:  # it may outlive bubblewrap by a moment
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    async def _wait_until_gone(self, finding: asyncio.Task[int]) -> None:
        await self._process.wait()
        await finding
        if self._first is None:
            return
        self._kill()
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._first, gone.set)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_S):
                    await gone.wait()
        finally:
            loop.remove_reader(self._first)
            os.close(self._first)


def _exceeded(root: Path) -> Reason:
    """Return which limit all processes inside together have reached. Raise OSError if that can't be seen.

    `root` is the sandbox's root folder as the system shows it outside: before it is made, that is the system's own.
    """
    if root.stat().st_dev == Path("/").stat().st_dev:
        return ""
    processes = [path for path in (root / "proc").iterdir() if path.name.isdigit()]
    if sum(map(_resident_bytes, processes)) > MEMORY_BYTES:
        return "memory"
    if psutil.virtual_memory().available < _LEFT_FOR_OTHERS:
        return "memory"
    scratch = os.statvfs(f"{root}{SCRATCH}")
    return "files" if scratch.f_files - scratch.f_ffree > MOST_FILES else ""


def _resident_bytes(process: Path) -> int:
    """Return how much memory a process takes; 0 if it has ended meanwhile."""
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _decoded(report: bytes) -> _Report | None:
    try:
        return msgspec.json.decode(report, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


async def _open_pipe(opened: contextlib.ExitStack, inherited: contextlib.ExitStack) -> tuple[asyncio.StreamReader, int]:
    """Return a reader of a new pipe, and the end in which to write."""
    read_end, write_end = os.pipe()
    inherited.callback(os.close, write_end)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
    )
    opened.callback(transport.close)
    return reader, write_end


def _memory_file(content: bytes, inherited: contextlib.ExitStack) -> int:
    """Return a file in memory, to be read from its beginning."""
    fd = os.memfd_create("qwendesk")
    inherited.callback(os.close, fd)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


# By number on x86-64. They fail as for want of a permission.
REFUSED: Mapping[str, int] = {
    # Looking into other processes.
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
    "process_madvise": 440,
    # Changing what is mounted, and further namespaces.
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "unshare": 272,
    "setns": 308, "name_to_handle_at": 303, "open_by_handle_at": 304,
    # Large parts of the kernel that take programs or pointers from anyone.
    "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "add_key": 248, "request_key": 249, "keyctl": 250, "fanotify_init": 300,
    "modify_ldt": 154, "personality": 135, "uselib": 134, "lookup_dcookie": 212, "nfsservctl": 180, "sysfs": 139,
    # The network, and sockets to the machine that a virtual one runs on. Pairs of sockets within a script stay.
    "socket": 41,
    # Memory that outlives its process or that no limit counts.
    "memfd_create": 319, "memfd_secret": 447, "shmget": 29, "move_pages": 279, "migrate_pages": 256,
    # What only administrators may do.
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
    "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "syslog": 103,
    "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305, "iopl": 172, "ioperm": 173,
    "vhangup": 153, "sethostname": 170, "setdomainname": 171,
}  # fmt: skip

# mseal, of Linux 6.10. Later calls have not been judged, so they fail as they do on an older kernel.
_NEWEST = 462
_CLONE, _CLONE3, _IOCTL, _PRCTL = 56, 435, 16, 157
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h.
_NEW_NAMESPACES = 0x7E020000
# Requests of asm/ioctls.h that type into the terminal of somebody else.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# PR_SET_PDEATHSIG of linux/prctl.h. A script that has taken over bubblewrap's process inside could outlive the app.
_SET_PARENT_DEATH_SIGNAL = 1

# Where they begin in struct seccomp_data, in bytes; of an argument, its lower 32 bits.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
# AUDIT_ARCH_X86_64 of linux/audit.h. Calls in the manner of 32-bit programs have other numbers.
_X86_64 = 0xC000003E

# BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGT|BPF_K, BPF_JMP|BPF_JSET|BPF_K, BPF_RET|BPF_K.
_LOAD, _IF_EQUAL, _IF_GREATER, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
# SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, and SECCOMP_RET_ERRNO, to which the error's number is added.
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000


def syscall_filter() -> bytes:
    """Return the program for `bwrap --seccomp`. It is for x86-64 alone, and kills a process of another kind."""
    refuse, unknown, allow = _return(_FAIL | errno.EPERM), _return(_FAIL | errno.ENOSYS), _return(_ALLOW)
    program = [
        _load(_ARCHITECTURE),
        *_unless(_IF_EQUAL, _X86_64, [_return(_KILL)]),
        _load(_NUMBER),
        *_when(_IF_GREATER, _NEWEST, [unknown]),  # the calls of x32 too, whose numbers begin at 2^30
        *_when(_IF_EQUAL, _CLONE3, [unknown]),  # its flags lie in memory, where no filter can look: clone is used then
    ]
    for number in REFUSED.values():
        program += _when(_IF_EQUAL, number, [refuse])
    for_clone = [_load(_FIRST_ARGUMENT), *_when(_IF_ANY_BIT, _NEW_NAMESPACES, [refuse]), allow]
    for_prctl = [_load(_FIRST_ARGUMENT), *_when(_IF_EQUAL, _SET_PARENT_DEATH_SIGNAL, [refuse]), allow]
    for_ioctl = [_load(_SECOND_ARGUMENT)]
    for request in (_TIOCSTI, _TIOCLINUX):
        for_ioctl += _when(_IF_EQUAL, request, [refuse])
    program += _when(_IF_EQUAL, _CLONE, for_clone)
    program += _when(_IF_EQUAL, _PRCTL, for_prctl)
    program += _when(_IF_EQUAL, _IOCTL, [*for_ioctl, allow])
    return b"".join([*program, allow])


def _load(offset: int) -> bytes:
    """Load 32 bits of what is known of the call."""
    return struct.pack("=HBBI", _LOAD, 0, 0, offset)


def _return(action: int) -> bytes:
    return struct.pack("=HBBI", _RETURN, 0, 0, action)


def _when(test: int, value: int, then: list[bytes]) -> list[bytes]:
    """Compare what was loaded with `value`, do `then` if the test holds, and go on."""
    return [struct.pack("=HBBI", test, 0, len(then), value), *then]


def _unless(test: int, value: int, then: list[bytes]) -> list[bytes]:
    """Do `then` if the test does not hold, and go on."""
    return [struct.pack("=HBBI", test, len(then), 0, value), *then]


_logger = logging.getLogger(__name__)

# Holds 1 where AppArmor lets only programs with a profile of their own make a sandbox, as on Ubuntu from 24.04 on.
_RESTRICTION = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_TRIAL_S = 20.0


async def find_sandbox() -> Sandbox | str:
    """Return the sandbox of this PC if it has been seen to confine, else a sentence that says why there is none."""
    if platform.machine() != "x86_64":
        return tr("Python runs only confined, and QwenDesk can't confine it on this kind of processor yet.")
    if os.geteuid() == 0:
        return tr("Python runs only confined, which QwenDesk doesn't do as root. Start it as an ordinary user.")
    sandbox = Sandbox(find_bwrap(), find_python())
    if not sandbox.bwrap:
        return tr("Python runs only confined. Install the package bubblewrap, then open this menu again.")
    if not sandbox.python:
        return tr("This PC has no Python of the system. Install the package python3, then open this menu again.")
    return await try_sandbox(sandbox) or sandbox


async def try_sandbox(sandbox: Sandbox) -> str:
    """Return "" if a script in the sandbox can do what it must and nothing else, or a sentence on what failed."""
    probes = (paths.resources_folder() / "sandbox" / "probes.py").read_text(encoding="utf-8")
    call = f"report({str(Path.home())!r}, {PROCESSES}, {MEMORY_BYTES})"
    try:
        outcome = await run_confined(f"{probes}\n\n{call}\n", sandbox, wall_s=_TRIAL_S)
    except OSError as error:
        return tr("Python runs only confined, and bubblewrap can't be started: {0}.", error.strerror or str(error))
    _logger.info("Trial of the sandbox: %s", outcome)
    return _judged(outcome)


def _judged(outcome: Outcome) -> str:
    if not outcome.has_started:
        if _is_restricted():
            return tr(
                "AppArmor doesn't let bubblewrap confine programs. The guide's page on tools says how to allow it."
            )
        said = next(iter(outcome.output.strip().splitlines()), "")
        return tr("This system doesn't let bubblewrap confine programs ({0}).", said)
    try:
        done = json.loads(outcome.output)
    except ValueError:
        done = None
    if done == ["work"] and outcome.status == 0:
        return ""
    _logger.warning("A confined test script did not end as it must: %s", outcome)
    return tr("A test script was not confined as it must be, so Python isn't offered. The log says more.")


def _is_restricted() -> bool:
    try:
        return _RESTRICTION.read_text().strip() == "1"
    except OSError:
        return False
