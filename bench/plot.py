"""Plots as SVG, in a few lines: curves over a logarithmic or plain axis, and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 34, 62
_KNOWN = {"A": "#888888", "B": "#2f9e7a", "Dragoman": "#d9730d", "Dragoman, chat -> chat": "#d9730d"}
_OTHERS = ("#6a57c9", "#8a6d1d", "#b4489c", "#3b76d6")


def colour(name: str, number: int) -> str:
    """The colour of a subject, the same in every plot for the common ones."""
    return _KNOWN.get(name) or _OTHERS[number % len(_OTHERS)]


class Axis(msgspec.Struct, frozen=True):
    """Maps a value to a position."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return self.start + (value - low) / ((high - low) or 1) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**power for power in powers]
            return [tick for tick in found if self.low <= tick <= self.high]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
        while (self.high - self.low) / step > 6:
            step *= 2
        return [step * number for number in range(math.ceil(self.low / step), int(self.high / step) + 1)]


def curves(
    title: str, x: str, y: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], *, log: bool
) -> str:
    """Lines with a legend; `log` on both axes, or plain from zero."""
    xs = [px for _, points in lines for px, _ in points]
    ys = [py for _, points in lines for _, py in points]
    low, high = (10 ** math.floor(math.log10(min(ys))), max(ys) * 1.3) if log else (0.0, max(ys) * 1.1)
    across = Axis(min(xs) if log else 0.0, max(xs), _LEFT, WIDTH - _RIGHT, log)
    up = Axis(low, high, HEIGHT - _BOTTOM, _TOP, log)
    parts = [*_frame(title, x, y), *_x_ticks(across), *_y_ticks(up)]
    for number, (name, points) in enumerate(lines):
        ink = colour(name, number)
        path = " ".join(f"{across.place(px):.1f},{up.place(py):.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2"/>')
        if log:
            parts += [_dot(dot, ink) for dot in path.split(" ")]
    return _svg([*parts, *_legend([name for name, _ in lines])])


def bars(
    title: str, unit: str, groups: Sequence[tuple[str, Sequence[tuple[str, float]]]], names: Sequence[str]
) -> str:
    """Groups of bars on a logarithmic axis, because values differ by orders of magnitude."""
    values = [value for _, ones in groups for _, value in ones]
    up = Axis(10 ** math.floor(math.log10(min(values) / 2)), max(values) * 1.5, HEIGHT - _BOTTOM, _TOP, True)
    parts = [*_frame(title, "", unit), *_y_ticks(up)]
    room = (WIDTH - _LEFT - _RIGHT) / len(groups)
    wide = room * 0.84 / len(names)
    for place, (label, ones) in enumerate(groups):
        left = _LEFT + room * place + room * 0.08
        for name, value in ones:
            number = list(names).index(name)
            top, bottom = up.place(value), up.start
            parts.append(
                f'<rect x="{left + wide * number:.1f}" y="{top:.1f}" width="{wide * 0.9:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour(name, number)}"/>'
            )
        parts.append(_text(left + room * 0.42, HEIGHT - _BOTTOM + 16, label, "middle"))
    return _svg([*parts, *_legend(names)])


def _frame(title: str, x: str, y: str) -> list[str]:
    bottom = HEIGHT - _BOTTOM
    return [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}" fill="none" stroke="#888888"/>',
        _text(_LEFT, 16, title, "start", bold=True),
        _text(WIDTH - _RIGHT, bottom + 32, x, "end"),
        _text(_LEFT - 6, _TOP - 4, y, "end"),
    ]


def _x_ticks(axis: Axis) -> list[str]:
    return [_text(axis.place(tick), HEIGHT - _BOTTOM + 16, _short(tick), "middle") for tick in axis.ticks()]


def _y_ticks(axis: Axis) -> list[str]:
    out: list[str] = []
    for tick in axis.ticks():
        y = axis.place(tick)
        out.append(_text(_LEFT - 6, y + 4, _short(tick), "end"))
        out.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="#888888" stroke-opacity=".25"/>')
    return out


def _legend(names: Sequence[str]) -> list[str]:
    out: list[str] = []
    x = float(_LEFT)
    for number, name in enumerate(names):
        out.append(
            f'<rect x="{x:.1f}" y="{HEIGHT - 18}" width="10" height="10" fill="{colour(name, number)}"/>'
        )
        out.append(_text(x + 14, HEIGHT - 9, name, "start"))
        x += 30 + 6.3 * len(name)
    return out


def _dot(place: str, ink: str) -> str:
    x, y = place.split(",")
    return f'<circle cx="{x}" cy="{y}" r="3" fill="{ink}"/>'


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _svg(parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
    style = 'font-family="sans-serif" font-size="12" fill="#888888">'
    return "\n".join([head + style, *parts, "</svg>\n"])
