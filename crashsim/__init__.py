"""Crash consistency, explored: simulated media, every schedule, every crash point, every image a crash can leave.

    medium, media/                    what a crash can leave: one definition, one small module a medium
    programs, liveness, search        a sans-I/O program as an automaton; breadth-first search over many at once
    spread, walks                     the same search over many processes; sampled schedules where it is too large
    promises, replay, bounds          what is judged, how a counterexample is written down, what a search covers
    scene, picture_…                  a counterexample as a drawing, in a terminal and on a page
    core_…, mutants                   aimed at lastgood's own core, and at deliberately broken versions of it
    abstract, abstract_…              the core's protocol as a compiled model, equal to the programs state for state
    stateful/                         any store, yours too, under a Hypothesis state machine
    command                           `lastgood explore`

What a clean verdict cannot tell: anything beyond its bounds, and anything its medium does not do. It is a verdict about
the program's order of steps, not about the machine it will run on.

Engine and media import neither core, numba nor torch; the compiled model loads numba when one is made.
"""
