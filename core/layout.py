"""The sizes of a store and its header file. Checked by round-trip and damage tests.

    store/                    a directory
    ├── header                what follows; renamed into place last, so its presence is the store's
    ├── lock                  held by the writer; says who it is
    ├── slot-0000             record area, then room for one payload, both in whole pages
    ├── ...
    └── slot-0005             in_flight + keep of them

    header, page 0            offset  bytes  field (little-endian)
                                   0      8  magic "LASTGOOD"
                                   8      4  format version
                                  12      4  number of slots
                                  16     16  store id
                                  32      8  bytes of payload a slot has room for
                                  40      8  bytes of a chunk, at most
                                  48      4  bytes of meta a record has room for
                                  52      4  saves in flight
                                  56      4  checkpoints to keep
                                  60      4  persists a save makes: 2, or 1
                                  64      8  nanoseconds since 1970 when it was created
                                  72      4  CRC32C of the bytes before
    header, page 1            the mark: zeros, or magic "LGMARKED", store id, CRC32C of both
    header, page 2            page 0 again: one copy may rot

The mark is persisted before the first acknowledgement. It tells a store that never acknowledged anything (a fresh start
is right) from one that has lost everything (an error).
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from .cells import IN_FLIGHT_LIMIT, KEEP_LIMIT
from .digest import DIGEST_BYTES
from .errors import Damaged, FormatTooNew, NotAStore, WrongGeometry
from .incoming import whole_number
from .record import FIXED_BYTES, FORMAT_VERSION, sealed
from .rules import PAGE_BYTES, align_up, chunk_count, record_area_bytes, slot_file_bytes

HEADER = "header"
LOCK = "lock"
MAGIC = b"LASTGOOD"
MARK_MAGIC = b"LGMARKED"
FIXED = struct.Struct("<8sII16sQQIIIIQ")
MARK_OFFSET = PAGE_BYTES
COPY_OFFSET = 2 * PAGE_BYTES
HEADER_BYTES = 3 * PAGE_BYTES
CHUNKS_LIMIT = 2**24  # a slot's record names the digest of each, and is read as a whole

_ARGUMENT = {"chunk_limit_bytes": "chunk_bytes"}
"""Fields that a caller knows by another name."""


def check_fits(payload_bytes: int, layout: Layout) -> None:
    """Raise WrongGeometry, in one line, for a payload that a slot has no room for."""
    if payload_bytes < 0:
        raise WrongGeometry(f"total_bytes={payload_bytes}: give 0 or more")
    if payload_bytes > layout.slot_bytes:
        raise WrongGeometry(
            f"a payload of {payload_bytes:,} bytes does not fit into slots of {layout.slot_bytes:,}:"
            f" call grow({payload_bytes})"
        )


def slot_name(slot: int) -> str:
    """The file of a slot."""
    return f"slot-{slot:04d}"


@dataclass(frozen=True)
class Layout:
    """What a store was created with, in the header's order. Sizes in bytes."""

    store: bytes
    slot_bytes: int
    chunk_limit_bytes: int
    meta_bytes: int
    in_flight: int
    keep: int
    persists: int
    created_at_ns: int

    @property
    def slot_count(self) -> int:
        """Slots: one for each save in flight and each checkpoint kept."""
        return self.in_flight + self.keep

    @cached_property
    def chunk_bytes(self) -> int:
        """What a payload is cut into; never more than a whole slot."""
        return min(self.chunk_limit_bytes, align_up(self.slot_bytes))

    @cached_property
    def area_bytes(self) -> int:
        """The record area in front of each payload."""
        chunks = chunk_count(self.slot_bytes, self.chunk_bytes)
        return record_area_bytes(FIXED_BYTES, DIGEST_BYTES, self.meta_bytes, chunks)

    @cached_property
    def file_bytes(self) -> int:
        """Size of one slot file."""
        return slot_file_bytes(self.area_bytes, self.slot_bytes)

    @property
    def total_bytes(self) -> int:
        """Everything the store takes on its file system."""
        return HEADER_BYTES + self.slot_count * self.file_bytes

    def checked(self) -> Layout:
        """Itself. Raises WrongGeometry, or TypeError for what is no whole number, in one line."""
        names = [field.name for field in fields(self)[1:]]
        sizes = [whole_number(_ARGUMENT.get(name, name), getattr(self, name)) for name in names]
        return Layout(self.store, *sizes)._in_limits()

    def _in_limits(self) -> Layout:
        if not 1 <= self.in_flight <= IN_FLIGHT_LIMIT:
            raise WrongGeometry(f"in_flight={self.in_flight}: give 1 to {IN_FLIGHT_LIMIT}")
        if not 1 <= self.keep <= KEEP_LIMIT:
            raise WrongGeometry(f"keep={self.keep}: give 1 to {KEEP_LIMIT}; the newest checkpoint is always kept")
        if self.slot_bytes < 1:
            raise WrongGeometry(f"slot_bytes={self.slot_bytes}: give the size of the largest checkpoint, at least 1")
        if not PAGE_BYTES <= self.chunk_limit_bytes <= 2**30 or self.chunk_limit_bytes % PAGE_BYTES:
            raise WrongGeometry(f"chunk_bytes={self.chunk_limit_bytes}: give a multiple of {PAGE_BYTES}, at most 1 GiB")
        most_bytes = CHUNKS_LIMIT * self.chunk_limit_bytes
        if self.slot_bytes > most_bytes:
            raise WrongGeometry(f"slot_bytes={self.slot_bytes}: give at most {most_bytes:,}, or a larger chunk_bytes")
        if not 0 <= self.meta_bytes <= 2**20:
            raise WrongGeometry(f"meta_bytes={self.meta_bytes}: give 0 to 1 MiB; larger things belong in the payload")
        if self.persists not in (1, 2):
            raise WrongGeometry(f"persists={self.persists}: give 1 or 2")
        return self


def encode_header(layout: Layout, *, marked: bool = False) -> NDArray[np.uint8]:
    """The header file, with or without the mark."""
    body = FIXED.pack(MAGIC, FORMAT_VERSION, layout.slot_count, *astuple(layout))
    image = np.zeros(HEADER_BYTES, np.uint8)
    for offset in (0, COPY_OFFSET):
        image[offset : offset + len(body) + 4] = np.frombuffer(sealed(body), np.uint8)
    if marked:
        image[MARK_OFFSET:COPY_OFFSET] = encode_mark(layout)
    return image


def encode_mark(layout: Layout) -> NDArray[np.uint8]:
    """The header's second page in a store that has acknowledged a save."""
    page = np.zeros(PAGE_BYTES, np.uint8)
    mark = sealed(MARK_MAGIC + layout.store)
    page[: len(mark)] = np.frombuffer(mark, np.uint8)
    return page


@dataclass(frozen=True)
class Header:
    """The layout, whether the store has ever acknowledged a save, and what was wrong with one of the two copies, or ""."""

    layout: Layout
    marked: bool
    damage: str


@lru_cache(1)  # a writer reads the header before it has the lock and once more under it
def decode_header(image: bytes, path: str) -> Header:
    """What the header file says.

    Raises NotAStore for other bytes, Damaged when neither copy is whole, FormatTooNew for a later version.
    """
    copies = [image[offset : offset + PAGE_BYTES] for offset in (0, COPY_OFFSET)]
    whole = [layout for page in copies if (layout := _layout_in(page)) is not None]
    if not whole:
        if all(page[:8] != MAGIC for page in copies):
            raise NotAStore(f"{path} is not a lastgood store: its header begins with other bytes")
        versions = {struct.unpack_from("<I", page, 8)[0] for page in copies if page[:8] == MAGIC and len(page) >= 12}
        if len(versions) == 1 and (version := versions.pop()) > FORMAT_VERSION:
            raise FormatTooNew(
                f"{path} is a store of format {version}, this version reads up to {FORMAT_VERSION}: update lastgood"
            )
        raise Damaged(f"{path}: both copies in the file `{HEADER}` are damaged; restore it from elsewhere")
    layout = whole[0]
    right_mark = sealed(MARK_MAGIC + layout.store)
    mark = image[MARK_OFFSET : MARK_OFFSET + len(right_mark)]
    # A mark torn by a power loss was never followed by an acknowledgement; a damaged one must not hide a loss: anything
    # but zeros counts as marked, a page that is cut off too.
    marked = any(mark) or len(mark) < len(right_mark)
    damage = "" if mark == right_mark or not marked else f"{HEADER}: its mark is damaged and was taken for one"
    damage = damage if len(whole) == 2 else f"{HEADER}: one of its two copies is damaged, the other was used"
    return Header(layout, marked, damage)


def _layout_in(page: bytes) -> Layout | None:
    """What a copy says; None without this version's magic, version and digest, or when it says what no store can be."""
    start = MAGIC + struct.pack("<I", FORMAT_VERSION)
    if page[: len(start)] != start or page[: FIXED.size + 4] != sealed(page[: FIXED.size]):
        return None
    _, _, slots, store, *sizes = FIXED.unpack(page[: FIXED.size])
    with suppress(WrongGeometry):
        layout = Layout(store, *sizes).checked()
        return layout if layout.slot_count == slots else None
    return None
