"""Litmus programs, each with every image that a power loss after it can leave, worked out by hand from the rules.

Images are separated by `|`; `-` is an empty tree. A program's first part, up to `//`, only sets the scene: everything in it
is durable. Where a column is None, the one to its left holds.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A program, and its images on each medium of its table."""

    name: str
    program: str
    images: tuple[str | None, ...]


def row(name: str, program: str, *images: str | None) -> Row:
    """One row; the name is the test's."""
    return Row(name, program, images)


FILE_MEDIA = ("strict", "ext4", "page-cache")
A = "create a; append a o; sync // "
B = "create a; append a o; create b; append b o; sync // "
TWO = "create a; append a oo; sync // "
FILES = [
    row("create", "create a", "- | a=", None, None),
    row("create, persisted", "create a; fsync a", "a=", "a=", "- | a="),
    row("create, directory persisted", "create a; fsync /", "a=", "a=", "a="),
    row("append", "create a; append a x", "- | a= | a=x", "- | a= | a=0 | a=x", None),
    row("implied directory persist", "create a; append a x; fsync a", "a=x", "a=x", "- | a=x"),
    row("file and directory persisted", "create a; append a x; fsync a; fsync /", "a=x", "a=x", "a=x"),
    row("directory alone persisted", "create a; append a x; fsync /", "a=x", "a= | a=0 | a=x", None),
    row("data persisted", "create a; append a x; fdatasync a; fsync /", "a=x", "a=x", "a=x"),
    row(
        "create by rename",
        "create t; append t x; rename t a",
        "- | t= | t=x | a=x",
        "- | t= | t=0 | t=x | a= | a=0 | a=x",
        None,
    ),
    row(
        "replace by rename",
        A + "create t; append t n; rename t a",
        "a=o | a=o t= | a=o t=n | a=n",
        "a=o | a=o t= | a=o t=0 | a=o t=n | a= | a=0 | a=n",
        None,
    ),
    row(
        "replace by rename, file persisted",
        A + "create t; append t n; fsync t; rename t a",
        "a=o t=n | a=n",
        None,
        "a=o | a=o t=n | a=n",
    ),
    row(
        "replace by rename, all persisted",
        A + "create t; append t n; fsync t; rename t a; fsync /",
        "a=n",
        None,
        None,
    ),
    row(
        "replace by rename, directory only",
        A + "create t; append t n; rename t a; fsync /",
        "a=n",
        "a= | a=0 | a=n",
        None,
    ),
    row(
        "previous removed before the new one is durable",
        A + "create b; append b n; unlink a",
        "a=o | a=o b= | a=o b=n | b=n",
        "a=o | a=o b= | a=o b=0 | a=o b=n | b= | b=0 | b=n",
        "a=o | a=o b= | a=o b=0 | a=o b=n | - | b= | b=0 | b=n",
    ),
    row("two pages in place", TWO + "write a 0 nn", "a=oo | a=no | a=nn", "a=oo | a=no | a=on | a=nn", None),
    row("one page twice", A + "write a 0 p; write a 0 q", "a=o | a=p | a=q", None, None),
    row(
        "two files in place",
        B + "write a 0 n; write b 0 n",
        "a=o b=o | a=n b=o | a=n b=n",
        "a=o b=o | a=n b=o | a=o b=n | a=n b=n",
        None,
    ),
    row("a persist between", B + "write a 0 n; fdatasync a; write b 0 n", "a=n b=o | a=n b=n", None, None),
    row("the wrong file persisted", B + "write a 0 n; write b 0 n; fsync b", "a=n b=n", "a=o b=n | a=n b=n", None),
    row("truncated and written anew", A + "truncate a 0; append a n", "a=o | a= | a=n", "a=o | a= | a=0 | a=n", None),
    row("truncated, written anew, persisted", A + "truncate a 0; append a n; fsync a", "a=n", None, None),
    row(
        "shorter, then longer",
        "create a; append a xy; sync // truncate a 1; truncate a 2",
        "a=xy | a=x | a=x0",
        None,
        None,
    ),
    row(
        "append twice",
        A + "append a x; append a y",
        "a=o | a=ox | a=oxy",
        "a=o | a=ox | a=o0 | a=oxy | a=o0y | a=ox0 | a=o00",
        None,
    ),
    row(
        "a file in a new directory",
        "mkdir d; create d/f; append d/f x; fsync d/f",
        "d/ d/f=x",
        None,
        "- | d/ | d/ d/f=x",
    ),
    row(
        "a file in a new directory, that persisted too",
        "mkdir d; create d/f; append d/f x; fsync d/f; fsync d",
        "d/ d/f=x",
        None,
        "- | d/ d/f=x",
    ),
    row(
        "a file in a new directory, all persisted",
        "mkdir d; create d/f; append d/f x; fsync d/f; fsync d; fsync /",
        "d/ d/f=x",
        None,
        None,
    ),
    row(
        "from one directory to another",
        "mkdir d; mkdir e; create d/f; sync // rename d/f e/f",
        "d/ d/f= e/ | d/ e/ e/f=",
        None,
        None,
    ),
    row(
        "from one directory to another, the old one persisted",
        "mkdir d; mkdir e; create d/f; sync // rename d/f e/f; fsync d",
        "d/ e/ e/f=",
        None,
        None,
    ),
    row(
        "a second link, the first removed",
        A + "link a b; unlink a",
        "a=o | a=o b=o | b=o",
        None,
        "a=o | a=o b=o | b=o | -",
    ),
    row(
        "one name, another file",
        A + "unlink a; create a; append a n",
        "a=o | - | a= | a=n",
        "a=o | - | a= | a=0 | a=n",
        None,
    ),
    row("moved aside, made anew", A + "rename a b; create a", "a=o | b=o | a= b=o", None, None),
    row(
        "a persist brings the journal before it",
        "create a; append a x; create b; append b y; fsync b",
        "a=x b=y",
        "a= b=y | a=0 b=y | a=x b=y",
        "- | a= | a=0 | a=x | b=y | a= b=y | a=0 b=y | a=x b=y",
    ),
    row("a write in place brings no journal", A + "create b; write a 0 n; fsync a", "a=n b=", "a=n | a=n b=", None),
    row("renamed, then data persisted", A + "rename a b; fdatasync b", "b=o", "a=o | b=o", None),
    row("renamed, then persisted", A + "rename a b; fsync b", "b=o", None, "a=o | b=o"),
    row("everything persisted", "create a; append a x; mkdir d; create d/f; sync", "a=x d/ d/f=", None, None),
    row("failed persist", A + "write a 0 n; fsync a: EIO", "a=o | a=n", None, None),
    row("failed persist, another succeeds", A + "write a 0 n; fsync a: EIO; fsync a", "a=n", "a=o | a=n", None),
    row(
        "failed persist, written and persisted again",
        A + "write a 0 n; fsync a: EIO; write a 0 n; fsync a",
        "a=n",
        None,
        None,
    ),
    row("interrupted persist, another succeeds", A + "write a 0 n; fsync a: EINTR; fsync a", "a=n", None, None),
    row(
        "failed persist of an appended page, another succeeds",
        "create a; sync // append a x; fsync a: ENOSPC; fsync a",
        "a=x",
        "a=0 | a=x",
        "a= | a=0 | a=x",
    ),
    row("short append", "create a; sync // append a xyz: 1; fsync a", "a=x", None, None),
    row("no room", A + "create b: ENOSPC; append a x: EDQUOT; fsync a", "a=o", None, None),
]

MEMORY_MEDIA = ("pmem-eadr", "pmem", "mmap")
ALL = ".. | x. | .y | xy"
MEMORY = [
    row("store", "store 0 A0 x", ". | x", None, None),
    row("wide store", "store 0 A0 x; store 0 A1 y", ".. | x. | xy", None, None),
    row("two lines", "store 0 A0 x; store 0 B0 y", ".. | x. | xy", ALL, None),
    row("two threads, two lines", "store 0 A0 x; store 1 B0 y", ALL, None, None),
    row("two threads, one line", "store 0 A0 x; store 1 A1 y", ".. | x. | xy", None, None),
    row("one word twice", "store 0 A0 x; store 0 A0 y", ". | x | y", None, None),
    row("write-back without a fence", "store 0 A0 x; clwb 0 A", ". | x", None, None),
    row("a fence without write-back", "store 0 A0 x; sfence 0", "x", ". | x", None),
    row("write-back and fence", "store 0 A0 x; clwb 0 A; sfence 0", "x", "x", ". | x"),
    row("write-back before the store", "clwb 0 A; store 0 A0 x; sfence 0", "x", ". | x", None),
    row("another thread's fence", "store 0 A0 x; clwb 0 A; sfence 1", ". | x", None, None),
    row("another thread's write-back and fence", "store 0 A0 x; clwb 1 A; sfence 1", "x", "x", ". | x"),
    row(
        "another thread's part of the line",
        "store 0 A0 x; store 1 A1 y; clwb 1 A; sfence 1",
        "xy",
        "xy",
        ".. | x. | xy",
    ),
    row("written back halfway", "store 0 A0 x; clwb 0 A; store 0 A1 y; sfence 0", "xy", "x. | xy", ".. | x. | xy"),
    row(
        "written back between two stores to one word",
        "store 0 A0 x; store 0 A0 y; clwb 0 A; store 0 A0 z; sfence 0",
        "z",
        "y | z",
        ". | x | y | z",
    ),
    row("two lines, one fence", "store 0 A0 x; store 0 B0 y; clwb 0 A; clwb 0 B; sfence 0", "xy", "xy", ALL),
    row("the other line written back", "store 0 A0 x; store 0 B0 y; clwb 0 B; sfence 0", "xy", ".y | xy", ALL),
    row("data, fence, record", "store 0 A0 x; clwb 0 A; sfence 0; store 0 B0 y", "x. | xy", "x. | xy", ALL),
    row("data, msync, record", "store 0 A0 x; msync A; store 0 B0 y", "x. | xy", None, None),
    row("past the cache", "nt 0 A0 x", ". | x", None, None),
    row("past the cache, fenced", "nt 0 A0 x; sfence 0", "x", "x", ". | x"),
    row("past the cache, another thread's fence", "nt 0 A0 x; clwb 1 A; sfence 1", ". | x", None, None),
    row("past the cache, one line", "nt 0 A0 x; nt 0 A1 y", ALL, None, None),
    row("through and past the cache", "store 0 A0 x; nt 0 A1 y", ALL, None, None),
    row("past the cache, one word twice", "nt 0 A0 x; nt 0 A0 y", ". | x | y", None, None),
    row("a writer that fences", "nt 1 A0 x; sfence 1; store 0 B0 y; clwb 0 B; sfence 0", "xy", "xy", ALL),
    row("a writer that does not", "nt 1 A0 x; sfence 0; store 0 B0 y; clwb 0 B; sfence 0", ".y | xy", None, ALL),
    row("every line and a fence", "store 0 A0 x; nt 1 B0 y; persist 0", "x. | xy", "x. | xy", ALL),
    row("msync of one page of two", "store 0 A0 x; store 0 B0 y; msync B", "xy", ".y | xy", None),
    row("msync of both", "store 0 A0 x; store 0 B0 y; msync AB", "xy", None, None),
    row("persist of the file", "store 0 A0 x; store 1 B0 y; fsync", "xy", None, None),
    row("failed msync, another succeeds", "store 0 A0 x; msync A: EIO; msync A", "x", "x", ". | x"),
    row(
        "failed msync, stored and persisted again", "store 0 A0 x; msync A: EIO; store 0 A0 x; msync A", "x", None, None
    ),
]

SECTOR_MEDIA = ("strict", "block of 4096", "block")
"""Atoms are two sectors here on the disk in the middle: what eight do, fewer show."""
EVERY = ".. | x. | .y | xy"
SECTORS = [
    row("one sector", "write A x", ". | x", None, None),
    row("one request, two sectors", "write AB x", ".. | x. | xx", ".. | xx", ".. | x. | .x | xx"),
    row("two requests", "write A x; write B y", ".. | x. | xy", EVERY, None),
    row("one sector twice", "write A x; write A y", ". | x | y", None, None),
    row("drained", "write A x; write B y; drain", "xy", None, None),
    row("data, drained, record", "write A x; drain; write B y", "x. | xy", None, None),
    row("written over after it was drained", "write A x; drain; write A y", "x | y", None, None),
    row("written over, drained", "write A x; write A y; drain", "y", None, None),
    row("in flight while drained", "submit 1 A x; drain", "x", ". | x", None),
    row("completed after the drain", "submit 1 A x; drain; complete 1", "x", ". | x", None),
    row("completed before the drain", "submit 1 A x; complete 1; drain", "x", None, None),
    row("one in flight, one completed", "submit 1 A x; write B y; drain", "xy", ".y | xy", None),
    row("drained twice", "submit 1 A x; write B y; drain; complete 1; drain", "xy", None, None),
    row("durable when it completes", "fua A x", "x", None, None),
    row("durable itself, nothing else", "write A x; fua B y", "xy", ".y | xy", None),
    row("durable itself, then another", "fua A x; write B y", "x. | xy", None, None),
    row("a record durable itself after drained data", "write A x; drain; fua B y", "xy", None, None),
    row("torn over old content", "write AB x; drain; write AB y", "xx | yx | yy", "xx | yy", "xx | yx | xy | yy"),
    row("failed drain, another succeeds", "write A x; drain: EIO; drain", "x", ". | x", None),
    row("failed drain, written and drained again", "write A x; drain: EIO; write A x; drain", "x", None, None),
    row("failed write, drained", "write A x: EIO; drain", "x", ". | x", None),
]

LIES = [
    row("honest or not", A + "write a 0 n; fsync a", "a=n", "a=o | a=n", None),
    row("a second persist does not bring it", A + "write a 0 n; fsync a; fsync a", "a=n", "a=o | a=n", None),
    row(
        "two files",
        B + "write a 0 n; fsync a; write b 0 n; fsync b",
        "a=n b=n",
        "a=n b=n | a=o b=n | a=n b=o",
        "a=o b=o | *",
    ),
    row(
        "payload, then record",
        TWO + "write a 0 n; fsync a; write a 1 n; fsync a",
        "a=nn",
        "a=nn | a=on | a=no",
        "a=oo | *",
    ),
    row("written over", A + "write a 0 n; fsync a; write a 0 m; fsync a", "a=m", "a=m | a=n", "a=o | *"),
]
"""Images with no lie, with at most one, with at most two; `*` stands for all in the column to the left."""


def expected(images: tuple[str | None, ...], column: int) -> set[str]:
    """The images in one column."""
    text = images[column]
    if text is None:
        return expected(images, column - 1)
    found: set[str] = set()
    for image in text.split(" | "):
        found |= expected(images, column - 1) if image == "*" else {"" if image == "-" else image}
    return found
