"""The system calls that a confined script may not make, as a program for Linux's seccomp.

Namespaces already keep a script from everything that is the user's. The filter keeps it from the parts of the kernel
in which ways out of namespaces have been found, and from memory that no limit counts. What it refuses is what no
ordinary script needs. Numbers: arch/x86/entry/syscalls/syscall_64.tbl of Linux 6.12. Form of the program: struct
sock_filter of linux/filter.h, on struct seccomp_data of linux/seccomp.h.
"""

import errno
import struct
from collections.abc import Mapping

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
"""By number on x86-64. They fail as for want of a permission."""

_NEWEST = 462
"""mseal, of Linux 6.10. Later calls have not been judged, so they fail as they do on an older kernel."""
_CLONE, _CLONE3, _IOCTL, _PRCTL = 56, 435, 16, 157
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Requests of asm/ioctls.h that type into the terminal of somebody else."""
_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h. A script that has taken over bubblewrap's process inside could outlive the app."""

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Where they begin in struct seccomp_data, in bytes; of an argument, its lower 32 bits."""
_X86_64 = 0xC000003E
"""AUDIT_ARCH_X86_64 of linux/audit.h. Calls in the manner of 32-bit programs have other numbers."""

_LOAD, _IF_EQUAL, _IF_GREATER, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGT|BPF_K, BPF_JMP|BPF_JSET|BPF_K, BPF_RET|BPF_K."""
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
"""SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, and SECCOMP_RET_ERRNO, to which the error's number is added."""


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
