"""Any store under a state machine: every order of steps, any operation refused, power lost with any image.

    disk        files of real bytes, and what a power loss may leave of them; every operation is one step
    operations  what a store does to it, how the world refuses it, and what a power loss takes
    fibres      threads that run one at a time, each until its next step, in whatever order the machine likes
    threads     what stands in for the modules `threading`, `queue` and `time`
    adapter     what you write to put your own store under the machine: one class, three methods
    ledger      what was acknowledged, and so what may be found; every verdict names a promise
    world       a disk, the processes that come and go over it, and the promises at every step
    machine     the Hypothesis state machine

    from lastgood.crashsim.stateful import Adapter, machine_for
    TestMyStore = machine_for(MyAdapter).TestCase          # see Adapter for how MyAdapter is written

Needs Hypothesis, and nothing here imports the core: `core_stateful` puts lastgood's own store under the same machine.

What a green run cannot tell: it looks at random, so only a failure proves anything, and it knows one medium, ordinary
files behind a page cache. The explorer is exhaustive, within its bounds.
"""

from __future__ import annotations

from .adapter import Adapter, Busy
from .disk import Disk, File
from .fibres import Fibre, Killed, Schedule
from .ledger import BrokenPromise, Ledger
from .machine import StoreMachine, machine_for
from .operations import Loss, Operation, Refusal
from .threads import StandingTime, Threads
from .world import World

__all__ = [
    "Adapter",
    "BrokenPromise",
    "Busy",
    "Disk",
    "Fibre",
    "File",
    "Killed",
    "Ledger",
    "Loss",
    "Operation",
    "Refusal",
    "Schedule",
    "StandingTime",
    "StoreMachine",
    "Threads",
    "World",
    "machine_for",
]
