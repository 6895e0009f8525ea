"""The second solver: cvc5 is asked every question that z3 answered "unsat", as SMT-LIB text, and must say so, too.

The two share no code. That both are wrong about one formula, in the same way, is what is left to believe.
"""

from __future__ import annotations

from collections.abc import Iterable

import cvc5
import z3

MILLISECONDS = 60_000
"""For one question; the slowest takes a thirtieth of it."""


def second_word(formulas: Iterable[z3.BoolRef]) -> str:
    """What cvc5 says of these formulas together: `sat`, `unsat`, or anything else, which proves nothing."""
    solver = z3.Solver()
    solver.add(*formulas)
    return word_on(solver.to_smt2())


def word_on(text: str) -> str:
    """What cvc5 says of a script with one `(check-sat)`."""
    manager = cvc5.TermManager()
    checker = cvc5.Solver(manager)
    checker.setOption("tlimit-per", str(MILLISECONDS))
    checker.setLogic("ALL")
    parser = cvc5.InputParser(checker)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(checker, symbols)
    return said.strip()
