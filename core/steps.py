"""What a program asks of its driver: the plain ints that `save` and `recover` yield.

A program never does input or output. It yields one of these, the driver does it, writes DONE or another status into
`mine[STATUS]`, and resumes. STEP asks for nothing: it marks that one shared word was just read or changed, so that an
explorer can let somebody else run there.

The order in which a program yields these *is* the persist order that the promises rest on.
"""

from __future__ import annotations

STEP = 0
ACQUIRED = 1
WRITE_PAYLOAD = 2
PERSIST_PAYLOAD = 3
WRITE_RECORD = 4
PERSIST_RECORD = 5
WRITE_MARK = 6
PERSIST_MARK = 7
ACKNOWLEDGE = 8
WRITE_EMPTY_RECORD = 9
PERSIST_EMPTY_RECORD = 10
WAIT = 11

READ_RECORD = 20
VERIFY_PAYLOAD = 21
REWRITE_RECORD = 22
REWRITE_PAYLOAD = 23

NAMES = {value: name for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)}
