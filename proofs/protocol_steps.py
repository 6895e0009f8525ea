"""Every step of the protocol, in one list: a save's, then what the world does and recovery's."""

from __future__ import annotations

from . import protocol_crashes, protocol_saving
from .protocol import ACTIONS, Action

STEPS: tuple[Action, ...] = tuple(
    action
    for module in (protocol_saving, protocol_crashes)
    for action in ACTIONS
    if action.take.__module__ == module.__name__
)
