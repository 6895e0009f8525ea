"""How a drawn counterexample looks: one style sheet, light and dark, and the measures of the drawing."""

from __future__ import annotations

ROW = 23
HEAD = 74
CHIP_LEFT, TEXT_LEFT, TEXT_WIDTH = 38, 92, 448
LANE = 46
TRACK = 15
GROUP_GAP = 17
SAVE_COLOURS = 6

STYLE = """
:root { color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d2127; --soft: #69717d; --faint: #a9b0ba; --line: #e3e1da; --band: #f3f1ea;
  --bad: #c8102e; --bad-soft: #fdecee; --good: #1c7c54;
  --s0: #8d949e; --s1: #3b6fb6; --s2: #c77700; --s3: #14867c; --s4: #8a4fd0; --s5: #a3576f; --s6: #6d7d1d; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171c; --card: #1b1f26; --ink: #e8eaee; --soft: #9aa3b0; --faint: #5d6673; --line: #2c323c; --band: #20252d;
  --bad: #ff6b7d; --bad-soft: #3a1d24; --good: #5fd0a0;
  --s0: #9aa3b0; --s1: #7fb0f5; --s2: #f3b04d; --s3: #4fd1c2; --s4: #c19bff; --s5: #eb9db4; --s6: #c3d45c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 ui-sans-serif, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 30px 22px 44px; }
h1 { font-size: 23px; line-height: 1.3; margin: 4px 0 10px; font-weight: 650; text-wrap: pretty; }
h1 b { color: var(--bad); }
.over { color: var(--soft); font-size: 13px; letter-spacing: .02em; }
.promised { color: var(--soft); margin: 0 0 18px; max-width: 78ch; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 20px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; flex: 1 1 280px; }
.card.edge { border-color: var(--bad); background: var(--bad-soft); flex-grow: 2; }
.card h2 { font-size: 12px; font-weight: 600; color: var(--soft); margin: 0 0 3px; letter-spacing: .03em; }
.card ul { margin: 0; padding-left: 18px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 6px 8px;
  overflow-x: auto; }
figcaption { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 8px 8px 6px; color: var(--soft); font-size: 12.5px;
  border-top: 1px solid var(--line); }
figcaption span { display: inline-flex; align-items: center; gap: 6px; }
footer { margin-top: 16px; color: var(--soft); font-size: 13px; }
code { font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; color: var(--ink);
  background: var(--band); border-radius: 5px; padding: 1px 5px; }
svg { display: block; }
svg text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
svg .small { font-size: 11px; fill: var(--soft); }
svg .number { font-size: 11px; fill: var(--faint); text-anchor: end; font-variant-numeric: tabular-nums; }
svg .head { font-size: 12px; fill: var(--soft); text-anchor: middle; font-weight: 600; }
svg .quiet { fill: var(--soft); }
svg .chip { font-size: 11px; font-weight: 600; text-anchor: middle; }
svg .bad { fill: var(--bad); } svg .strong { font-weight: 600; }
svg .lane { stroke: var(--line); stroke-width: 1.5; }
svg .track { stroke: var(--line); stroke-width: 1; }
svg .band { fill: var(--band); }
svg .guide { stroke-width: 1.2; opacity: .55; fill: none; }
svg .settled { stroke-width: 5; stroke-linecap: round; }
svg .outstanding { stroke-width: 4; stroke-dasharray: 3 3.4; }
svg .cross { stroke: var(--bad); stroke-width: 2.4; stroke-linecap: round; }
svg .crash { stroke: var(--bad); stroke-width: 2; }
svg .missing { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 4; fill: none; }
svg .halo { paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
"""

CLASSES = "".join(
    f"svg .s{index} {{ stroke: var(--s{index}); }} svg .f{index} {{ fill: var(--s{index}); }}\n"
    for index in range(SAVE_COLOURS + 1)
)
MIXED_CLASSES = "svg .s-1 { stroke: var(--bad); stroke-dasharray: 2 2; } svg .f-1 { fill: var(--bad); }\n"
STYLE += CLASSES + MIXED_CLASSES


def colour(sequence: int) -> int:
    """The number of a save's colour: 0 for what belongs to no save, −1 for a mix of several."""
    return sequence if sequence <= 0 else 1 + (sequence - 1) % SAVE_COLOURS
