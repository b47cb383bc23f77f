"""A Python that has imported what most commands need, and forks one for each that is asked for.

Importing takes a command longer than most of what tests ask of it. `warm.py serve SOCKET`
imports once and listens; `warm.py run SOCKET -m routeyard …` (or `-c CODE …`) is the command for
whoever starts it: the same words, folder, environment, streams and exit code, in a process of its
own. What reads the environment while it is imported (hubs, Prefect) is left to each command.
"""

import array
import json
import os
import socket
import sys

#: Modules that read nothing but code when they are imported.
MODULES = (
    "aiohttp", "duckdb", "jinja2", "numpy", "pandas", "pyarrow.compute",
    "pyarrow.dataset", "pyarrow.parquet", "pydantic", "rich.console", "rich.table",
    "safetensors.numpy", "scipy.sparse", "scipy.stats", "sklearn.decomposition",
    "sklearn.feature_extraction.text", "torch", "typer", "vl_convert", "yaml",
    "routeyard.flows.build", "routeyard.flows.cli.tree", "routeyard.flows.demo.server",
    "routeyard.flows.evaluation.evaluate", "routeyard.pipelines.evaluate.run",
    "routeyard.flows.audits", "routeyard.flows.label_audits", "routeyard.flows.new_recipe",
    "routeyard.flows.publish", "routeyard.flows.site", "routeyard.datacards.site",
    "routeyard.pipelines.audit.labels", "routeyard.pipelines.ingest.results",
    "routeyard.pipelines.collect.plan", "routeyard.pipelines.evaluate.studies",
    "routeyard.pipelines.verify.prove", "routeyard.pipelines.label.scorers.mcq",
    "routeyard.pipelines.label.scorers.numeric",
)  # fmt: skip


def _asked(connection: socket.socket) -> tuple[dict[str, object], list[int]]:
    """The words, folder and environment, and the three streams."""
    streams = array.array("i")
    _, more, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(3 * streams.itemsize))
    streams.frombytes(more[0][2])
    with connection.makefile("rb") as said:
        return json.loads(said.readline()), list(streams)


def import_all() -> None:
    """Import what most commands need."""
    from importlib import import_module

    for name in MODULES:
        import_module(name)


def _hash_code() -> None:
    """Hashes of our code, of which each build and each `status` needs most."""
    from routeyard.flows.workspace import PACKAGES, module_hash, reach

    for name in reach(frozenset(name for name in sys.modules if name.startswith(PACKAGES))):
        module_hash(name)


def serve(address: str) -> dict[str, object]:
    """Answer until the last who holds our input is gone; returns in a child, with its job."""
    import gc
    import selectors

    import_all()
    _hash_code()
    gc.freeze()  # what is here no command has to look through
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as ready:
        listening.bind(address + ".new")
        listening.listen(64)
        os.rename(address + ".new", address)
        ready.register(listening, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        running: set[int] = set()
        while all(key.fileobj is listening for key, _ in ready.select()):
            connection, _ = listening.accept()
            running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}
            # One process waits for the command, so that several run beside each other.
            if waiting := os.fork():
                running.add(waiting)
                connection.close()
                continue
            listening.close()
            job, streams = _asked(connection)
            if command := os.fork():
                for stream in (0, 1, 2, *streams):
                    os.close(stream)
                code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
                connection.sendall(f"{code}\n".encode())
                os._exit(0)
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return job
    for pid in running:
        os.waitpid(pid, 0)
    sys.exit(0)


def run(job: dict[str, object]) -> None:
    """Be the Python that was asked for."""
    import runpy

    os.chdir(str(job["folder"]))
    os.environ.clear()
    os.environ.update(job["environment"])
    option, what, *words = job["words"]
    # In place of the folder and the one path that the server was started with.
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:2] = ["" if option == "-c" else os.getcwd(), *paths]
    try:
        if option == "-c":
            sys.argv = ["-c", *words]
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = [what, *words]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        sys.exit(0)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            print(ended.code, file=sys.stderr)
        sys.exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def ask(address: str, words: list[str]) -> int:
    """Have the command run, with the streams, the folder and the environment of this process."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        streams = array.array("i", [0, 1, 2])
        server.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        job = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
        server.sendall(json.dumps(job).encode() + b"\n")
        code = int(server.makefile().readline() or 1)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    if sys.argv[1] == "serve":
        run(serve(sys.argv[2]))
    else:
        sys.exit(ask(sys.argv[2], sys.argv[3:]))
