"""A sans-I/O program, given as a generator, as an automaton that can be stopped, forked and compared. Trusted.

A program under test is an ordinary generator function. It reaches shared words through primitives that are handed to
it, and asks its driver for everything else by yielding a small int. Between two of those it is deterministic, so
where it stands is told by what it was answered so far:

    (shared word: load 0) ──answer 0──> (shared word: add 1) ──answer 2──> (asks: WRITE_PAYLOAD) ──status 0──> …

A generator cannot be copied. Each node keeps the answers that led to it; a successor is found by running a fresh
generator through those answers once, and remembered. Nodes reached by different answers are the same node when the
frame stands at the same yield with the same live variables, the program's own words are the same, and so are the notes
taken on the way (which steps were passed, the worst answer).

P1 one-each     between two yields a program touches at most one shared word: more is an error, since a driver that
                resumes it once would run both without anybody in between
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any, cast

from .liveness import live_variables

TOUCHES = 0
ASKS = 1
ENDED = 2
RAISED = 3

Call = Callable[..., int]
"""What a program's primitives do: `call(name, *arguments) -> answer`."""

Build = Callable[[Call], tuple[Iterator[int], list[int]]]
"""Makes a fresh generator over these primitives, and the list of its own words."""


@dataclass(eq=False, slots=True)
class Node:
    """Where one run of a program stands: about to touch a shared word, asking its driver, ended, or broken off."""

    number: int
    kind: int
    request: tuple[Any, ...]
    words: tuple[int, ...]
    passed: frozenset[int]
    worst: int
    history: tuple[int, ...]
    snapshot: Any
    """Where the frame stood at its last yield, by its live variables; and what it was answered there, if anything."""
    answered: dict[int, Node] = field(default_factory=dict)


class _Reached(Exception):
    """Carries the primitive call that has no answer yet out of the generator."""

    def __init__(self, request: tuple[Any, ...]) -> None:
        self.request = request


class Program:
    """All nodes of one program, found as they are needed."""

    def __init__(self, build: Build, *, quiet: frozenset[int], noted: frozenset[int], status_word: int) -> None:
        """`quiet` steps ask for nothing; passing a `noted` one is remembered; answers go into `words[status_word]`."""
        self.build = build
        self.quiet = quiet
        self.noted = noted
        self.status_word = status_word
        self.nodes: list[Node] = []
        self._known: dict[Any, Node] = {}
        self._live: dict[int, frozenset[str]] | None = None
        self.first = self._run(())

    def after(self, node: Node, answer: int) -> Node:
        """The node that follows when this one's request is answered."""
        following = node.answered.get(answer)
        if following is None:
            following = self._run((*node.history, answer))
            node.answered[answer] = following
        return following

    def _run(self, history: tuple[int, ...]) -> Node:
        answers = list(reversed(history))
        touched = 0

        def call(*request: Any) -> int:
            nonlocal touched
            touched += 1
            assert touched <= 1, "P1 one-each: two shared words between two yields"
            if answers:
                return answers.pop()
            raise _Reached(request)

        generator, words = self.build(call)
        snapshot: Any = "start"
        passed: frozenset[int] = frozenset()
        worst = 0
        while True:
            try:
                asked = next(generator)
            except _Reached as reached:
                return self._node(TOUCHES, reached.request, words, passed, worst, history, snapshot)
            except StopIteration:
                return self._node(ENDED, (), words, passed, worst, history, None)
            except AssertionError as broken:
                return self._node(RAISED, (str(broken),), words, passed, worst, history, None)
            touched = 0
            if len(answers) <= 1:  # only where it stands at last matters
                snapshot = self._snapshot(generator)
            if asked in self.quiet:
                continue
            if not answers:
                return self._node(ASKS, (asked,), words, passed, worst, history, snapshot)
            answer = answers.pop()
            words[self.status_word] = answer
            snapshot = (snapshot, answer)
            worst = max(worst, answer)
            if asked in self.noted:
                passed |= {asked}

    def _snapshot(self, generator: Iterator[int]) -> Any:
        frame = cast("GeneratorType[int, None, None]", generator).gi_frame
        assert frame is not None
        if self._live is None:
            self._live = live_variables(frame.f_code)
        live = self._live[frame.f_lasti]
        values = []
        found = frame.f_locals
        for name in frame.f_code.co_varnames:  # the order of `f_locals` tells who looked at it before, and when
            if name not in live or name not in found:
                continue
            value = found[name]
            if isinstance(value, int):
                values.append((name, value))
            elif name not in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
                raise TypeError(f"{name} is a {type(value).__name__}: a program's own variables must be ints")
        return frame.f_lasti, tuple(values)

    def _node(self, kind: int, request: tuple[Any, ...], words: list[int], *rest: Any) -> Node:
        passed, worst, history, snapshot = rest
        key = (kind, request, tuple(words), passed, worst, snapshot)
        node = self._known.get(key)
        if node is None:
            node = Node(len(self.nodes), kind, request, tuple(words), passed, worst, history, snapshot)
            self.nodes.append(node)
            self._known[key] = node
        return node
