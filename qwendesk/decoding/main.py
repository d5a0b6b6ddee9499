"""Entry point of the decoding process: limits its memory, decodes the file on standard input and replies.

Linux and Windows enforce the limit. macOS doesn't enforce RLIMIT_AS, so only the limits on file and picture sizes apply
there.
"""

import ctypes
import faulthandler
import io
import os
import stat
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

import msgspec

from qwendesk.decoding.protocol import (
    CLIP_TIME_LIMIT_S,
    MAX_FILE_BYTES,
    DecodeClip,
    DecodeImage,
    DecodeRefusal,
    DecodeRefused,
    DecodeReply,
    DecodeRequest,
    InspectClip,
    InspectImage,
    ReadOfficeText,
    ReadPage,
    memory_limit,
    time_limit_s,
)

_EXTENDED_LIMIT_INFORMATION = 9
_LIMIT_PROCESS_MEMORY = 0x100
_KILL_ON_JOB_CLOSE = 0x2000


def limit_memory(limit_bytes: int) -> bool:
    """Make larger allocations of this process, and of each that it starts, fail.

    Return True if the system enforces that.
    """
    if sys.platform == "win32":
        return _join_limited_job(limit_bytes)
    if sys.platform == "darwin":
        return False
    import resource

    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    allowed = limit_bytes if hard_limit == resource.RLIM_INFINITY else min(limit_bytes, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard_limit))
    return True


def limit_cpu_time(seconds: float) -> None:
    """Make each process that this one starts end after so much CPU time, should this one not live to end it.

    Windows ends them with this process: see `limit_memory`.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = round(seconds) if hard_limit == resource.RLIM_INFINITY else min(round(seconds), hard_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard_limit))


class _BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION of winnt.h."""

    _fields_ = (
        ("per_process_user_time", ctypes.c_int64),
        ("per_job_user_time", ctypes.c_int64),
        ("limit_flags", ctypes.c_uint32),
        ("minimum_working_set", ctypes.c_size_t),
        ("maximum_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION of winnt.h."""

    _fields_ = (
        ("basic", _BasicLimits),
        ("io_counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


def _join_limited_job(limit_bytes: int) -> bool:
    """Put this process into a job object with the limit, in which those that it starts end with it."""
    kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    handle = ctypes.c_void_p
    kernel32.CreateJobObjectW.argtypes, kernel32.CreateJobObjectW.restype = (handle, ctypes.c_wchar_p), handle
    kernel32.SetInformationJobObject.argtypes = (handle, ctypes.c_int, handle, ctypes.c_uint32)
    kernel32.AssignProcessToJobObject.argtypes = (handle, handle)
    kernel32.GetCurrentProcess.restype = handle
    limits = _ExtendedLimits()
    limits.basic.limit_flags = _LIMIT_PROCESS_MEMORY | _KILL_ON_JOB_CLOSE
    limits.process_memory = limit_bytes
    job = kernel32.CreateJobObjectW(None, None)
    return bool(
        job
        and kernel32.SetInformationJobObject(
            job, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        and kernel32.AssignProcessToJobObject(job, kernel32.GetCurrentProcess())
    )


# Argument before the request, with which the bundle's engine program becomes a decoding process.
OPTION = "--decode-file"


def main(arguments: Sequence[str]) -> int:
    """Serve the request in the last argument. Return 0 if a reply was sent, even a refusal."""
    request: DecodeRequest = msgspec.json.decode(arguments[-1], type=DecodeRequest)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (0, 1):
            msvcrt.setmode(descriptor, os.O_BINARY)
    limit_memory(memory_limit(request))
    # The app enforces the time limit. This one is for the case that the app is gone.
    faulthandler.dump_traceback_later(time_limit_s(request), exit=True)
    reply, payload = _serve(request)
    with open(1, "wb", closefd=False) as output:
        output.write(msgspec.json.encode(reply) + b"\n")
        output.write(payload)
    return 0


def _serve(request: DecodeRequest) -> tuple[DecodeReply, bytes]:
    try:
        file = _open_input()
        if isinstance(request, InspectImage | DecodeImage):
            from qwendesk.decoding.image_decoder import decode_image

            return decode_image(file, request)
        if isinstance(request, InspectClip | DecodeClip):
            from qwendesk.decoding.clip_decoder import decode_clip
            from qwendesk.decoding.ffmpeg_decoder import MOST_THREADS

            limit_cpu_time(CLIP_TIME_LIMIT_S * MOST_THREADS)
            return decode_clip(file, request)
        if isinstance(request, ReadOfficeText):
            from qwendesk.decoding.office_decoder import decode_office

            return decode_office(file, request)
        if isinstance(request, ReadPage):
            from qwendesk.decoding.page_decoder import decode_page

            return decode_page(file, request)
        from qwendesk.decoding.pdf_decoder import decode_pdf

        return decode_pdf(file, request)
    except DecodeRefused as refused:
        return refused.refusal, b""
    except MemoryError:
        return DecodeRefusal(reason="out_of_memory"), b""
    except Exception as error:  # noqa: BLE001 - libraries raise anything for a damaged file
        return DecodeRefusal(reason="damaged", detail=str(error) or type(error).__name__), b""


def _open_input() -> BinaryIO:
    """Return standard input as a seekable file: the file itself, or the bytes from a pipe."""
    file = open(0, "rb", closefd=False)  # noqa: SIM115 - it is open as long as the process
    # Not `seekable`, which is true for pipes too in some versions of Python on Windows.
    if not stat.S_ISREG(os.fstat(0).st_mode):
        return io.BytesIO(file.read(MAX_FILE_BYTES))
    file.seek(0)
    return file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
