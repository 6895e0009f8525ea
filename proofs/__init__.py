"""Claims about the persistence core: what is proved, to what bound, by which tool. Not shipped in the wheel.

`python -m proofs.check` runs every claim of the ledger with its tool, and the claim's weakened twin beside it. What the
tools say is read, never their exit status alone. `proofs/README.md` is the ledger for people.
"""
