"""The list of system calls: what the filter makes of every number, on both architectures."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from routeyard.pipelines.common.isolation.jail import calls

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, KILLED = "allowed", "killed"
#: What a program that holds a kernel's secrets, mounts, other processes or memory would need.
DANGEROUS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "clone3": (435, 435),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "add_key": (248, 217),
    "keyctl": (250, 219), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "open_by_handle_at": (304, 265),
    "init_module": (175, 105), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "clock_settime": (227, 112), "personality": (135, 92),
    "vmsplice": (278, 75), "splice": (275, 76), "seccomp": (317, 277), "setuid": (105, 146),
    "inotify_init1": (294, 26),
}  # fmt: skip


def decision(program: bytes, number: int, *arguments: int, architecture: int) -> str:
    """What the filter decides, by running it: its instructions are few."""
    words = [*arguments, *[0] * 6][:6]
    given = struct.pack("IIQ6Q", number, architecture, 0, *(word & (2**64 - 1) for word in words))
    lines = [*struct.iter_unpack("HBBI", program)]
    at, value = 0, 0
    while True:
        code, yes, no, operand = lines[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("I", given, operand)
        elif code == 0x06:
            kind, error = operand & 0xFFFF0000, operand & 0xFFFF
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(kind) or errno.errorcode[error]
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}
            at += yes if holds[code] else no


class Filter:
    def __init__(self, machine: str) -> None:
        self.calls = calls.allowed(machine)
        self.program, self.architecture = calls.program(machine), ARCHITECTURES[machine]

    def __call__(self, call: str | int, *arguments: int) -> str:
        number = call if isinstance(call, int) else self.calls[call][0]
        return decision(self.program, number, *arguments, architecture=self.architecture)


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def decide(machine: str) -> Filter:
    return Filter(machine)


def test_what_is_listed_is_allowed_and_nothing_else(decide: Filter) -> None:
    plain = {number for number, rule in decide.calls.values() if not rule}
    ruled = {number for number, rule in decide.calls.values() if rule}
    assert len(plain) > 130
    for number in range(2_000):
        if number not in ruled:
            assert decide(number) == (ALLOWED if number in plain else "ENOSYS"), number


def test_dangerous_calls_and_those_of_later_kernels_do_not_exist(
    machine: str, decide: Filter
) -> None:
    for name, (on_x86, on_arm) in DANGEROUS.items():
        assert name not in decide.calls
        assert decide(on_x86 if machine == "x86_64" else on_arm) == "ENOSYS", name
    assert {decide(number) for number in (600, 1_000, 100_000, 0x3FFFFFFF)} == {"ENOSYS"}


def test_calls_by_another_entry_end_the_program(machine: str, decide: Filter) -> None:
    for number in (0x40000000, 0x40000000 | 39, 0xFFFFFFFF):  # x32
        assert decide(number) == KILLED
    # 32 bits on the same machine, and the other machine.
    others = {0x40000003, 0x40000028, *ARCHITECTURES.values()} - {ARCHITECTURES[machine]}
    for architecture in others:
        for number in range(500):
            assert decision(decide.program, number, architecture=architecture) == KILLED


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("socket", (1, 1, 0), ALLOWED),
        ("socket", (2, 1, 0), "EAFNOSUPPORT"),
        # The kernel reads 32 bits of it.
        ("socket", (1 | 40 << 32, 1, 0), ALLOWED),
        ("socketpair", (40, 1, 0), "EAFNOSUPPORT"),
        ("clone", (0x003D0F00,), ALLOWED),  # a thread
        ("clone", (0x01200011,), ALLOWED),  # a process
        ("clone", (0x10000011,), "EPERM"),
        ("clone", (0x00020000,), "EPERM"),
        ("ioctl", (0, 0x5401), ALLOWED),
        ("ioctl", (0, 0x5412), "ENOTTY"),  # TIOCSTI, which types
        ("fcntl", (0, 1030), ALLOWED),
        ("fcntl", (0, 1031), "EINVAL"),  # F_SETPIPE_SZ
        ("prctl", (15,), ALLOWED),
        ("prctl", (22,), "EINVAL"),  # PR_SET_SECCOMP
        ("execve", (), "ENOENT"),
        ("execveat", (), "ENOENT"),
    ],
)
def test_arguments(decide: Filter, call: str, arguments: tuple[int, ...], expected: str) -> None:
    assert decide(call, *arguments) == expected


def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    folder = Path("/usr/include")
    path = {
        "x86_64": folder / "x86_64-linux-gnu/asm/unistd_64.h",
        "aarch64": folder / "asm-generic/unistd.h",
    }[machine]
    if not path.is_file():
        pytest.skip(f"no {path}: install the kernel's headers (linux-libc-dev)")
    found = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", path.read_text())
    numbers = {name: int(number) for name, number in found}
    if machine == "aarch64":
        numbers["newfstatat"] = numbers["fstatat"]
    listed = {name: number for name, (number, _) in calls.allowed(machine).items()}
    known = listed.keys() & numbers.keys()
    assert listed.keys() - known <= {"fchmodat2"}, "as old headers may lack"
    assert {name: listed[name] for name in known} == {name: numbers[name] for name in known}
    if machine == "x86_64":
        assert listed.keys() >= calls.allowed("aarch64").keys()
    for name, pair in DANGEROUS.items():
        assert numbers.get(name, pair[machine == "aarch64"]) == pair[machine == "aarch64"], name
