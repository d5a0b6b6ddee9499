"""The filter of system calls as a program: what it answers for each call, and that its numbers are right."""

import ctypes
import ctypes.util
import errno
import struct

import pytest

pytest.importorskip("resource", reason="scripts are confined on Linux only")

from qwendesk.toolbox.confinement.confined_run import REFUSED, syscall_filter

X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
READ, WRITE, CLONE, EXECVE, IOCTL, PRCTL, SOCKETPAIR = 0, 1, 56, 59, 16, 157, 53


def answer(number: int, *arguments: int, architecture: int = X86_64) -> int:
    """Return what the kernel does with a call: runs the program as Linux does."""
    given = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    call = struct.pack("=iIQ6Q", ctypes.c_int32(number).value, architecture, 0, *given)
    program = list(struct.iter_unpack("=HBBI", syscall_filter()))
    place, loaded = 0, 0
    while True:
        operation, if_true, if_false, value = program[place]
        place += 1
        match operation:
            case 0x20:
                loaded = struct.unpack_from("=I", call, value)[0]
            case 0x06:
                return int(value)
            case 0x15 | 0x25 | 0x45:
                holds = {0x15: loaded == value, 0x25: loaded > value, 0x45: bool(loaded & value)}[operation]
                place += if_true if holds else if_false


@pytest.mark.parametrize("number", [READ, WRITE, EXECVE, SOCKETPAIR, 9, 202, 231, 257, 293, 334, 436])
def test_ordinary_calls_are_allowed(number: int) -> None:
    assert answer(number) == ALLOW


@pytest.mark.parametrize("name", REFUSED)
def test_refused_calls_fail_for_want_of_a_permission(name: str) -> None:
    assert answer(REFUSED[name]) == FAIL | errno.EPERM


def test_unknown_calls_fail_as_on_an_older_system() -> None:
    assert {answer(number) for number in (435, 463, 600, 0x40000000, 0x40000001, -1)} == {FAIL | errno.ENOSYS}


def test_other_kinds_of_programs_are_killed() -> None:
    assert {answer(READ, architecture=each) for each in (I386, AARCH64, 0)} == {KILL}


def test_arguments_decide_where_a_call_has_two_faces() -> None:
    refused = FAIL | errno.EPERM
    assert answer(CLONE, 0x3D0F00) == ALLOW, "a thread of glibc"
    assert answer(CLONE, 0x01200011) == ALLOW, "a fork"
    assert {answer(CLONE, 17 | 1 << bit) for bit in (17, 25, 26, 27, 28, 29, 30)} == {refused}
    assert answer(IOCTL, 0, 0x5401) == ALLOW
    assert {answer(IOCTL, 0, request) for request in (0x5412, 0x541C, 0xFFFFFFFF00005412)} == {refused}
    assert answer(PRCTL, 15) == ALLOW
    assert {answer(PRCTL, 1, 0), answer(PRCTL, 1 << 32 | 1, 0)} == {refused}


def test_numbers_are_those_of_the_names() -> None:
    """As libseccomp knows them, where it is installed."""
    found = ctypes.util.find_library("seccomp")
    if not found:
        pytest.skip("libseccomp is not installed")
    resolve = ctypes.CDLL(found).seccomp_syscall_resolve_name_arch
    resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    assert {name: resolve(X86_64, name.encode()) for name in REFUSED} == REFUSED
