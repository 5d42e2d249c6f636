"""Lines over the number of rows, both axes by powers of ten, as SVG."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 780, 480
LEFT, TOP, RIGHT, BOTTOM = 60, 40, 200, 50
DASHES = ("", "6 3", "2 3", "8 3 2 3")
"""Of shares of bad rows."""
COLOURS = ("#1f6f8b", "#c4572e", "#4f7d3a", "#7b4b94", "#b08a1e", "#5b6470", "#a83256")


def picture(figures: Sequence[dict[str, Any]], name: str, unit: str) -> str:
    """One line for each command and share of bad rows; `name` is the figure that is drawn."""
    steps = list(dict.fromkeys(one["step"] for one in figures))
    shares = sorted({one["bad"] for one in figures})
    lines: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for one in sorted(figures, key=lambda one: (steps.index(one["step"]), one["bad"])):
        line = lines.setdefault((one["step"], one["bad"]), [])
        line.append((one["rows"], max(one[name], 0.01)))
    across = _powers([rows for line in lines.values() for rows, _ in line])
    up = _powers([value for line in lines.values() for _, value in line])

    def place(rows: float, value: float) -> tuple[float, float]:
        x = (math.log10(rows) - across[0]) / (across[-1] - across[0])
        y = (math.log10(value) - up[0]) / (up[-1] - up[0])
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(unit)} against rows</text>',
    ]
    for power in across:
        x, _ = place(10.0**power, 10.0 ** up[0])
        drawn.append(_rule(x, TOP, x, HEIGHT - BOTTOM))
        drawn.append(_text(x, HEIGHT - BOTTOM + 18, f"{10**power:,}", "middle"))
    for power in up:
        _, y = place(10.0 ** across[0], 10.0**power)
        drawn.append(_rule(LEFT, y, WIDTH - RIGHT, y))
        drawn.append(_text(LEFT - 6, y + 4, f"{10.0**power:,g}", "end"))
    for number, ((step, bad), line) in enumerate(lines.items()):
        title = step + (f", {bad:.0%} bad" if len(shares) > 1 else "")
        colour = COLOURS[steps.index(step) % len(COLOURS)]
        dash = DASHES[shares.index(bad) % len(DASHES)]
        stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        points = [place(*point) for point in sorted(line)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        drawn.append(f'<polyline points="{way}" fill="none" {stroke}/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        x, y = WIDTH - RIGHT + 14, TOP + 16 * number
        drawn.append(f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" {stroke}/>')
        drawn.append(_text(x + 30, y + 4, title, "start"))
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _powers(values: Sequence[float]) -> range:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return range(low, max(high, low + 1) + 1)


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
