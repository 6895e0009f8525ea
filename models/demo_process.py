"""A process that has PyTorch loaded and forks one training child at a time. Checked by `tests/demo/`.

Starting Python and importing PyTorch takes seconds, and the demo starts its training a dozen times. So one *nursery*
process pays once and forks. It has no thread and no open store when it does; the child that is killed is an ordinary
process, with a store and threads of its own.

    supervisor ──{job}, write end of a pipe──▶ nursery ──fork──▶ child ──reports, one JSON object a line──▶ supervisor
               ◀──{"process": id}─────────────                     ╳ SIGKILL: the pipe ends
               ──{"reap"}─────────────────────▶ waitpid
               ◀──{"status": …}───────────────

P1 whole-reports     a report is one write of less than PIPE_BUF bytes: the supervisor reads all of it or none, whatever
                     the moment of the kill
P2 right-process     the nursery reaps only when asked, so a process id is never somebody else's when it is killed
P3 no-orphans        a child dies with the nursery (parent-death signal), the nursery with the supervisor (end of file)
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

MESSAGE_BYTES = 65536
PR_SET_PDEATHSIG = 1
IMPORTED_FROM = str(Path(__file__).absolute().parents[2])  # not resolved: in the tree this room is reached by a link

SIZES = {"standard": (192, 4), "tiny": (32, 1)}
"""Width and depth of the model; `tiny` is for the tests."""
SABOTAGES = ("older", "random", "sampler")
"""What a resume can be made to get wrong, to show that the comparison notices."""


@dataclass(frozen=True)
class Job:
    """What a child is to train, and where it saves: nowhere without a directory.

    `scratch` is a directory for timing synchronous saves in, after the training; empty for no timing.
    """

    steps: int
    seed: int
    size: str = "standard"
    directory: str = ""
    every: int = 1
    in_flight: int = 4
    scratch: str = ""
    sabotage: str = ""
    acknowledged: int = 0
    """The newest step known to be durable; for the sabotage `older`."""


class Nursery:
    """The supervisor's end: starts children, kills them, learns how they ended."""

    def __init__(self, log: Path) -> None:
        """Start the process; what it and its children complain about goes to `log`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        self._log = log
        self._child: int | None = None
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [IMPORTED_FROM, os.environ.get("PYTHONPATH")])),
            "PYTHONSAFEPATH": "1",  # a random.py in the user's directory is none of our business
            "CUDA_VISIBLE_DEVICES": "",  # the demo is about the processor; a device's driver does not survive a fork
            "TMPDIR": str(log.parent),  # PyTorch leaves a directory there
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        with theirs, log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is the supervisor's to handle
            )

    def start(self, job: Job) -> int:
        """Fork a child that does `job`; return the descriptor its reports arrive at."""
        assert self._child is None, "one child at a time"
        reports, writing = os.pipe()
        try:
            self._child = int(self._ask(asdict(job), [writing])["process"])
        except BaseException:
            os.close(reports)
            raise
        finally:
            os.close(writing)
        return reports

    def kill(self) -> None:
        """Send SIGKILL to the child; P2: it is still ours even if it has ended."""
        assert self._child is not None
        os.kill(self._child, signal.SIGKILL)

    def reap(self) -> int:
        """Wait for the child, whose reports have ended; return its exit status, or minus the signal that ended it."""
        status = int(self._ask({"reap": True}, [])["status"])
        self._child = None
        return status

    def close(self) -> None:
        """Leave no process behind, and nobody who still writes files."""
        if self._child is not None:
            with contextlib.suppress(OSError):  # an interrupt came between a question and its answer
                self.kill()
                self.reap()
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            message = self._socket.recv(MESSAGE_BYTES)
        except ConnectionError:  # it ended before it read what we asked
            message = b""
        if not message:
            last = ["no reason was given", *self._log.read_text(errors="replace").splitlines()][-1]
            raise ChildProcessError(f"the process that starts the training has ended: {last}")
        reply: dict[str, Any] = json.loads(message)
        return reply


class Reports:
    """The child's end: writes reports; any of its threads may."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, kind: str, **facts: Any) -> None:
        """Hand one report to the supervisor, whole (P1)."""
        line = json.dumps({"report": kind, **facts}).encode() + b"\n"
        assert len(line) <= 4096, "P1 whole-reports"
        with self._lock:
            written = os.write(self._descriptor, line)
        assert written == len(line), "P1 whole-reports"


def serve(descriptor: int) -> None:
    """Be the nursery until the supervisor closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    from . import demo_training  # PyTorch, the text, everything a child needs

    demo_training.prepare()
    child = 0
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 1)
        if not message:
            return
        request = json.loads(message)
        if "reap" in request:
            _, status = os.waitpid(child, 0)
            control.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())
            continue
        nursery = os.getpid()
        child = os.fork()
        if child == 0:
            control.close()
            be_a_child(nursery, request, descriptors[0])
        os.close(descriptors[0])
        control.send(json.dumps({"process": child}).encode())


def be_a_child(nursery: int, job: dict[str, Any], descriptor: int) -> NoReturn:
    """Do the job and end; an error is reported in one line, with the traceback in the log."""
    from . import demo_training

    reports = Reports(descriptor)
    status = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == nursery:  # else it died before we asked to die with it
            demo_training.run(Job(**job), reports)
            status = 0
    except BaseException as problem:
        import traceback

        traceback.print_exc()
        reports.send("failed", error=f"{type(problem).__name__}: {problem}"[:1000])
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
