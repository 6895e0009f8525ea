"""Breadth-first search of the compiled model, over states packed into a few words each. Checked with the model.

Savers are interchangeable, so they are sorted before a state is packed; equal rows of words are equal states. The table
holds the numbers of known rows by the hash of their words.
"""

from __future__ import annotations

import numpy as np

from .abstract_judge import judge_crash, judge_move
from .abstract_protocol import AT_BITS, CHUNKS, FIELDS, HOLDS, NO_MOVE, SAVERS, WRITE, advance, kernel

# How far a search is: rows done, rows known, moves; what broke, where, and by whose move.
DONE_ROWS, KNOWN_ROWS, MOVES, BROKEN, BROKEN_AT, LAST_SAVER, LAST_CHOICE = range(7)


@kernel
def unpack(row: np.ndarray, layout: np.ndarray, state: np.ndarray) -> None:
    """Words to numbers; `layout` holds the word, the shift and the limit of each."""
    for field in range(len(state)):
        state[field] = row[layout[field, 0]] >> layout[field, 1] & layout[field, 2]


@kernel
def pack(state: np.ndarray, layout: np.ndarray, savers: int, row: np.ndarray) -> None:
    """Numbers to words, savers sorted first."""
    fields = len(state)
    for later in range(fields - savers + 1, fields):
        each, place = state[later], later
        while place > fields - savers and state[place - 1] > each:
            state[place] = state[place - 1]
            place -= 1
        state[place] = each
    field = 0
    for word in range(len(row)):
        packed = 0
        while field < fields and layout[field, 0] == word:
            packed |= state[field] << layout[field, 1]
            field += 1
        row[word] = packed


@kernel
def room_for(row: np.ndarray, rows: np.ndarray, table: np.ndarray) -> int:
    """Where in the table this row is, or belongs."""
    mixed = 0
    for word in range(len(row)):
        mixed = (mixed ^ int(row[word])) * 0x9E3779B97F4A7C1 & 0x3FFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    place = mixed & len(table) - 1
    while table[place] >= 0:
        known = table[place]
        same = True
        for word in range(len(row)):
            same &= rows[known, word] == row[word]
        if same:
            break
        place = place + 1 & len(table) - 1
    return place


@kernel
def enter_all(rows: np.ndarray, count: int, table: np.ndarray) -> None:
    """Fill an empty table with the rows that are known."""
    for index in range(count):
        table[room_for(rows[index], rows, table)] = index


@kernel
def move(before: np.ndarray, saver: int, choice: int, sizes: np.ndarray, state: np.ndarray, mine: np.ndarray) -> int:
    """Make a move from `before` into `state`; whether it can be made, and what it breaks. `mine` is room for a saver."""
    state[:] = before
    answer = advance(state, mine, saver, choice, sizes)
    if answer == HOLDS:
        answer = judge_move(before[len(before) - sizes[SAVERS] + saver], state, saver, sizes)
    return answer


@kernel
def explore(
    rows: np.ndarray,
    parents: np.ndarray,
    table: np.ndarray,
    layout: np.ndarray,
    sizes: np.ndarray,
    tally: np.ndarray,
    until: int,
    judging: bool,
) -> None:
    """Go on from `tally` until nothing is left, something is broken, the rows are full, or `until` of them are done.

    A move that breaks a promise leads nowhere. With `judging` off the rest is visited all the same.
    """
    savers, choices = sizes[SAVERS], sizes[CHUNKS] + 1
    before, state = np.empty(sizes[FIELDS], np.int64), np.empty(sizes[FIELDS], np.int64)
    row, mine = np.empty(rows.shape[1], np.int64), np.empty(5, np.int64)
    done, known, moves = tally[DONE_ROWS], tally[KNOWN_ROWS], tally[MOVES]
    while done < known and done < until and known + savers * choices <= len(rows) and not tally[BROKEN]:
        unpack(rows[done], layout, before)
        for saver in range(savers):
            at = before[len(before) - savers + saver] & (1 << AT_BITS) - 1
            for choice in range(choices if at == WRITE else 1):
                answer = move(before, saver, choice, sizes, state, mine)
                if answer == NO_MOVE:
                    continue
                moves += 1
                if answer == HOLDS:
                    pack(state, layout, savers, row)
                    place = room_for(row, rows, table)
                    if table[place] < 0:
                        table[place] = known
                        rows[known] = row
                        parents[known] = (done * savers + saver) * choices + choice
                        known += 1
                        if judging:
                            answer = judge_crash(state, sizes)
                if judging and answer != HOLDS and not tally[BROKEN]:
                    tally[BROKEN], tally[BROKEN_AT], tally[LAST_SAVER], tally[LAST_CHOICE] = answer, done, saver, choice
        done += 1
    tally[DONE_ROWS], tally[KNOWN_ROWS], tally[MOVES] = done, known, moves
