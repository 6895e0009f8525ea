"""How a litmus program is run on a medium of its table."""

from __future__ import annotations

from collections.abc import Callable

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.media.calls import Program, parse
from lastgood.crashsim.media.files import Files
from lastgood.crashsim.media.lying_disk import with_lies
from lastgood.crashsim.media.memory import Memory
from lastgood.crashsim.media.sectors import Sectors
from lastgood.crashsim.medium import Rules


def on_files(rules: Rules, program: str | Program) -> set[str]:
    """Images of a program on files, the part before `//` durable."""
    return set_up(rules, program).images()


def set_up(rules: Rules, program: str | Program) -> Files:
    """The files after a program."""
    return Files(rules, parse(program.replace("//", ";")) if isinstance(program, str) else program)


def on_memory(rules: Callable[[Callable[[int], int]], Rules], program: str | Program) -> set[str]:
    """Images of a program on mapped memory."""
    return Memory(rules, parse(program) if isinstance(program, str) else program).images()


def on_sectors(rules: Rules, program: str | Program, sectors_per_atom: int = 1) -> set[str]:
    """Images of a program on a disk."""
    asked = parse(program) if isinstance(program, str) else program
    return Sectors(rules, asked, sectors_per_atom=sectors_per_atom).images()


def on_disk_named(name: str, program: str) -> set[str]:
    """Images on a medium of the table of sectors."""
    medium, _, size = name.partition(" of ")
    return on_sectors(MEDIA[medium](), program, 2 if size else 1)


def with_lying(rules: Rules, program: str, budget: int) -> set[str]:
    """Images of a program on files with at most so many of its persists lying."""
    before, _, after = program.rpartition("//")
    scene = parse(before)
    return set().union(*(on_files(rules, scene + told) for told in with_lies(parse(after), budget)))
