"""Builds the jail: launcher → examiner (trusted tests) → subject (the program).

    launcher   makes the namespaces, waits; dies with the worker that started it
    examiner   process 1 of its namespace; runs the tests, holds the only way to
               report a result, untraceable
    subject    process 1 of a namespace inside that; forked before the tests are
               read, so that they are nowhere in its memory; holds two pipes to
               the examiner and nothing else

The subject cannot see, signal or trace the examiner, and what it sends is read
as data. A result is therefore never the program's to write.
"""

from __future__ import annotations

import builtins
import json
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any

from . import calls, examiner, kernel, subject

#: Where a program may write: the first that holds nothing it loads from, which stays read-only.
_SCRATCH = ("/tmp", "/scratch", "/var/tmp")  # noqa: S108 - inside the jail
#: Where the new root is put together: the first that exists and is not needed itself.
_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt", "/tmp")  # noqa: S108
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
_REMOUNT_READ_ONLY = 32 | 4096 | 1 | kernel.MS_NOSUID | kernel.MS_NODEV
#: First of the user ids that no account has, from which root's runs take theirs.
_FREE_IDS = 0x40000000


def main() -> None:
    """Entry of the bare interpreter: settings in argv, job on stdin, result on stdout."""
    settings = json.loads(sys.argv[1])
    kernel.die_with_parent()
    result = os.dup(1)
    ids = (os.getuid(), os.getuid())
    if settings["isolate"]:
        try:
            ids = _new_namespaces()
        except OSError as error:
            _report(result, {"refused": f"{error}"})
            return
    inner = os.fork()
    if inner == 0:
        try:
            _examiner(settings, ids, result)
        except BaseException as error:
            _report(result, {"broken": f"{type(error).__name__}: {error}"[:300]})
        finally:
            os._exit(0)
    os.close(0)
    _, status = os.waitpid(inner, 0)
    if os.WIFSIGNALED(status):
        # Nothing but a limit, reached by the tests themselves, kills the examiner.
        _report(result, {"passed": False, "reason": "the tests reached a limit"})


def _new_namespaces() -> tuple[int, int]:
    """Enter them; returns the user ids of examiner and subject inside."""
    if not kernel.known_architecture():
        raise OSError(f"the filter of system calls does not know {kernel.machine()}")
    spaces = kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS
    first = _FREE_IDS + os.getpid() * 2
    if os.getuid() == 0:
        try:
            kernel.unshare(spaces)
            return first, first + 1
        except PermissionError:
            # Root of a container: no power over mounts, but over its own ids.
            os.setgroups([])
            os.setresgid(first, first, first)
            os.setresuid(first, first, first)
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.NEWUSER | spaces)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return 0, 0


def _examiner(settings: dict[str, Any], ids: tuple[int, int], result: int) -> None:
    os.setsid()  # a signal to a process group crosses pid namespaces
    kernel.die_with_parent()
    jobs = os.dup(0)
    if settings["isolate"]:
        try:
            _new_root(ids[1], settings)
            kernel.unshare(kernel.NEWPID)
        except OSError as error:
            _report(result, {"refused": f"{error}"})
            return
    to_subject, to_examiner = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _subject(settings, ids[1], to_subject[0], to_examiner[1])
        finally:
            os._exit(0)
    os.close(to_subject[0])
    os.close(to_examiner[1])
    _silence()
    _drop(ids[0], settings)
    kernel.die_with_parent()  # a change of user id clears it
    kernel.hide_memory()
    _limit(settings, processes=settings["processes"] + 4)
    _show(settings["modules"]["path"])  # tests may import what programs may
    with open(jobs, encoding="utf-8") as stream:
        job = json.load(stream)
    with os.fdopen(to_subject[1], "wb") as requests, os.fdopen(to_examiner[0], "rb") as replies:
        program = examiner.Program(
            requests, replies, carry=job.get("carry", True), apart=job.get("apart", ())
        )
        passed, reason, fault = examiner.examine(job, program)
        said = {"passed": passed, "reason": reason, "fault": fault}
        said |= {"changed": program.changed, "apart": sorted(program.left.met)}
        _report(result, said)
        os._exit(0)  # takes the subject's namespace down with it


def _subject(settings: dict[str, Any], user: int, requests: int, replies: int) -> None:
    os.setsid()
    kernel.die_with_parent()
    _silence()
    os.dup2(requests, 3, inheritable=False)
    os.dup2(replies, 4, inheritable=False)
    os.closerange(5, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    _drop(user, settings)
    kernel.die_with_parent()  # a change of user id clears it
    _limit(settings, processes=settings["processes"] + 3)
    os.environ.clear()
    _show(settings["modules"]["path"])
    for name in ("exit", "quit"):  # `-S` leaves them out
        setattr(builtins, name, sys.exit)
    with os.fdopen(3, "rb") as incoming, os.fdopen(4, "wb") as outgoing:
        subject.serve(incoming, outgoing)


def _show(path: list[str]) -> None:
    """Let third-party modules be imported."""
    # A numerical library's threads would count against the limit of processes.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    sys.path += path


def _new_root(owner: int, settings: dict[str, Any]) -> None:
    wanted = _needed(settings["modules"]["bind"])
    root = _free([point for point in _MOUNT_POINTS if os.path.isdir(point)], wanted)
    scratch = _free(_SCRATCH, wanted)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    tight = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", root, "tmpfs", tight, "size=1m,mode=755")
    for path in wanted:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
            continue
        if os.path.isdir(path):
            os.makedirs(root + path, exist_ok=True)
        else:
            open(root + path, "w").close()
        kernel.mount(path, root + path, flags=kernel.MS_BIND | kernel.MS_REC)
        kernel.read_only(root + path)
    os.mkdir(f"{root}/dev")
    for device in ("null", "urandom"):
        open(f"{root}/dev/{device}", "w").close()
        kernel.mount(f"/dev/{device}", f"{root}/dev/{device}", flags=kernel.MS_BIND)
    os.makedirs(root + scratch, exist_ok=True)
    options = f"size={settings['scratch_mb']}m,nr_inodes=2048,mode=700"
    kernel.mount("tmpfs", root + scratch, "tmpfs", tight, options)
    os.chown(root + scratch, owner, owner)
    kernel.mount("none", root, flags=_REMOUNT_READ_ONLY)
    kernel.pivot(root)
    os.chdir(scratch)


def _free(places: Sequence[str], wanted: list[str]) -> str:
    """The first place that holds none of the wanted paths."""
    for place in places:
        if not any(f"{path}/".startswith(f"{place}/") for path in wanted):
            return place
    raise OSError(f"paths that a program may load from are in each of {', '.join(places)}")


def _needed(modules: list[str]) -> list[str]:
    """What an interpreter that is already running may still load from, `modules` included."""
    stdlib = os.path.dirname(os.path.realpath(os.__file__))
    named = [stdlib, os.path.join(os.path.realpath(sys.base_prefix), "lib"), *_SYSTEM]
    results = sorted({*(path for path in named if os.path.isdir(path)), *modules})
    return [
        path
        for path in results
        if not any(path != other and path.startswith(f"{other}/") for other in results)
    ]


def _drop(user: int, settings: dict[str, Any]) -> None:
    """Give up ids, capabilities and all system calls but the listed ones, for good."""
    if not settings["isolate"]:
        kernel.no_new_privileges()
        return
    kernel.lock_capabilities()  # while they still allow it
    if os.getuid() != user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.forget_capabilities()
    calls.allow_listed_calls()


def _limit(settings: dict[str, Any], *, processes: int) -> None:
    memory, file = settings["memory_mb"] << 20, settings["file_mb"] << 20
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_CPU, settings["cpu_s"]),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(what, (value, value))


def _silence() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _report(result: int, message: dict[str, Any]) -> None:
    os.write(result, json.dumps(message).encode())
