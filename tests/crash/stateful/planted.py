"""Bugs planted in the real store: each one small change, and the promises whose names the verdict may begin with."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from lastgood.core import steps
from lastgood.core.engine import Engine
from lastgood.core.flight import Flight
from lastgood.core.reading import payload_memory
from lastgood.core.ready import _perform as perform_ready
from lastgood.core.rules import BROKEN, DONE
from lastgood.crashsim.core_target import mutant_target
from lastgood.crashsim.mutants import MUTANTS


class Planted(NamedTuple):
    """What to hand to `CoreAdapter`."""

    says: str
    breaks: set[str]
    options: dict[str, Any]


def program(name: str, *breaks: str, **options: Any) -> Planted:
    """A mutant of the programs, as the explorer has it."""
    mutant = MUTANTS[name]
    return Planted(mutant.says, set(breaks), {"target": mutant_target(mutant), **options})


def swap(says: str, breaks: set[str], module: str, name: str, replacement: Any, **options: Any) -> Planted:
    """Another function in the core."""
    return Planted(says, breaks, {"swaps": ((module, name, replacement),), **options})


# --- what the engine might do wrong though the program is right ----------------------------------------------------------

perform, finished, prepare = Flight._perform, Engine.finished, Engine.prepare_slot


def believing(flight: Flight, step: int) -> None:
    """A record whose persist fails is taken for durable."""
    if step == steps.PERSIST_RECORD:
        with suppress(OSError):
            flight.engine.devices[flight._slot].persist()
    else:
        perform(flight, step)


def trying_again(flight: Flight, step: int) -> None:
    """A persist that fails is tried once more, and believed then."""
    if step in (steps.PERSIST_PAYLOAD, steps.PERSIST_RECORD):
        with suppress(OSError):
            flight.engine.devices[flight._slot].persist()
            return
        try:
            flight.engine.devices[flight._slot].persist()
        except OSError as error:
            flight._stop(BROKEN, error)
    else:
        perform(flight, step)


def silent(engine: Engine, flight: Flight, outcome: int) -> None:
    """Nobody is told of a failure but who waits on the ticket."""
    flight.is_told = True
    finished(engine, flight, outcome)


def trusting_the_cache(engine: Engine, scan: Any, step: int, slot: int) -> int:
    """What is kept is neither written again nor persisted before slots are handed out."""
    if step == steps.REWRITE_RECORD:
        engine.records[slot] = scan.records[slot]
    elif step != steps.PERSIST_RECORD:
        return perform_ready(engine, scan, step, slot)
    return DONE


def never_rewriting(engine: Engine, scan: Any, step: int, slot: int) -> int:
    """What is kept is persisted, but not written again: a page that was marked clean stays where it is."""
    if step == steps.REWRITE_RECORD:
        engine.records[slot] = scan.records[slot]
        return DONE
    return perform_ready(engine, scan, step, slot)


def growing(engine: Engine, slot: int) -> None:
    """A slot grows each time it is used."""
    device = engine.devices[slot]
    device.allocate(device.size() + 4096)


def unverified(device: Any, record: Any, into: Any) -> Any:
    """Bytes are handed out as they lie there, whoever is overwriting them."""
    payload = payload_memory(record)
    device.read(record.payload_offset, payload)
    return payload


def stale(reader: Any, candidates: Any, looks: int) -> bool:
    """A reader beside a writer looks once, and takes what moves meanwhile for damage."""
    return False


SURVIVES = "newest-survives"

PLANTED = {
    "acknowledge-before-record-persist": program("acknowledge-before-record-persist", SURVIVES, "loud"),
    "drop-record-persist": program("drop-record-persist", SURVIVES, "loud"),
    "slot-released-before-barrier": program("slot-released-before-barrier", SURVIVES, "loud"),
    "release-before-publish": program("release-before-publish", "no-reuse", "no-leak"),
    "double-release": program("double-release", "no-reuse"),
    "swap-over-newer": program("swap-over-newer", "monotone"),
    "forget-own-slot": program("forget-own-slot", "no-leak"),
    "sequence-restarts-low": program("sequence-restarts-low", "monotone", "never-wrong", "loud", SURVIVES),
    "recovery-takes-any": program("recovery-takes-any", SURVIVES, "never-wrong"),
    "recovery-frees-the-kept": program("recovery-frees-the-kept", "no-reuse"),
    "quarantine-is-forever": program("quarantine-is-forever", "loud", in_flight=1),
    "no-quarantine": program("free-on-record-persist-failure", "never-wrong", in_flight=1, ignores_digests=True),
    "drop-payload-persist": program("drop-payload-persist", "never-wrong", ignores_digests=True),
    "believe-failed-persist": swap(believing.__doc__ or "", {SURVIVES, "loud"}, "flight", "Flight._perform", believing),
    "try-persist-again": swap(trying_again.__doc__ or "", {SURVIVES, "loud"}, "flight", "Flight._perform", trying_again),
    "silent": swap(silent.__doc__ or "", {"loud"}, "engine", "Engine.finished", silent),
    "trust-the-cache": swap(trusting_the_cache.__doc__ or "", {SURVIVES, "loud"}, "ready", "_perform", trusting_the_cache),
    "never-rewrite": swap(never_rewriting.__doc__ or "", {SURVIVES, "loud"}, "ready", "_perform", never_rewriting),
    "unverified": swap(unverified.__doc__ or "", {"never-wrong", "no-harm"}, "reader", "fetch_payload", unverified),
    "look-once": swap(stale.__doc__ or "", {SURVIVES, "loud"}, "reader", "Reader._has_moved", stale),
    "grow": swap(growing.__doc__ or "", {"bounded"}, "engine", "Engine.prepare_slot", growing),
}  # fmt: skip
