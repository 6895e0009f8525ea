"""Whether an output file can be written, asked before the long work whose result it is to take."""

from __future__ import annotations

import os


def why_not_writable(path: str) -> str:
    """What stands against it, in a few words; nothing when a file of this name can be written. Touches nothing."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.basename(path) or os.path.isdir(path):
        return "give the name of a file"
    if not os.path.isdir(folder):
        return f"No such file or directory: {folder}"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return "Permission denied"
    return ""
