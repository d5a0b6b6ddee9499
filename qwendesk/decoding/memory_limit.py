"""Limits the memory of the process that calls it.

Linux and Windows enforce the limit. macOS doesn't enforce RLIMIT_AS, so only the limits on file and picture sizes apply
there.
"""

import ctypes
import sys
from typing import Any

_EXTENDED_LIMIT_INFORMATION = 9
_LIMIT_PROCESS_MEMORY = 0x100


def limit_memory(limit_bytes: int) -> bool:
    """Make larger allocations of this process fail. Return True if the system enforces that."""
    if sys.platform == "win32":
        return _join_limited_job(limit_bytes)
    if sys.platform == "darwin":
        return False
    import resource

    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    allowed = limit_bytes if hard_limit == resource.RLIM_INFINITY else min(limit_bytes, hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard_limit))
    return True


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
    """Put this process into a job object with the limit; the job lives as long as the process."""
    kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    handle = ctypes.c_void_p
    kernel32.CreateJobObjectW.argtypes, kernel32.CreateJobObjectW.restype = (handle, ctypes.c_wchar_p), handle
    kernel32.SetInformationJobObject.argtypes = (handle, ctypes.c_int, handle, ctypes.c_uint32)
    kernel32.AssignProcessToJobObject.argtypes = (handle, handle)
    kernel32.GetCurrentProcess.restype = handle
    limits = _ExtendedLimits()
    limits.basic.limit_flags = _LIMIT_PROCESS_MEMORY
    limits.process_memory = limit_bytes
    job = kernel32.CreateJobObjectW(None, None)
    return bool(
        job
        and kernel32.SetInformationJobObject(
            job, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        and kernel32.AssignProcessToJobObject(job, kernel32.GetCurrentProcess())
    )
