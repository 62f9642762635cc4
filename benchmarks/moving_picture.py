"""Draw the README's moving picture from the runs of `make demo`.

    python benchmarks/moving_picture.py runs/demo --out docs/figures/demo.svg

Accuracy along the stream, mean over seeds, is drawn as the stream passes. Above it are digits that
the source model was trained on, and digits of the domain that it meets. The file is an SVG with CSS
animation: browsers and README pages play it, and show all of it to readers who prefer no motion.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from attakit.report.curves import Band, average, bands, smoothed_accuracy
from attakit.report.images import encode_picture
from attakit.report.runs import RunRecord, find_runs, grouped, read_run
from attakit.stream import Samples
from attakit.stream.digits import MEAN, STD, digits

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 744, 176, 384
LOWEST, HIGHEST = 20.0, 100.0  # accuracy in percent
SECONDS, DRAWN = 12, 75  # of one turn, and the percentage of it in which lines are drawn
SHOWN, SIDE = 7, 34  # digits of a domain, and their size
LINES = {  # the method's label, what the picture calls it, its colour
    "anchor head": ("attakit: anchor head, {labels:.0f} labels", "#008a64"),
    "tent": ("Tent, without labels", "#b8568f"),
    "source only": ("not adapted", "#6d6d6d"),
}


@dataclass(frozen=True)
class Scale:
    """From samples and percent to places in the picture."""

    samples: int

    def x(self, seen: float) -> float:
        return LEFT + (RIGHT - LEFT) * seen / self.samples

    def y(self, accuracy: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (accuracy - LOWEST) / (HIGHEST - LOWEST)


def draw(runs: Sequence[RunRecord]) -> str:
    """Draw the picture from runs of the demo."""
    groups = grouped(runs, lambda run: run.label)
    first = groups["anchor head"][0]
    parts = bands(first)
    scale = Scale(parts[-1].stop)
    data = digits()
    shifts = [_shift(band, scale, data.targets.parts[band.name], parts) for band in parts]
    lines = [_line(groups[label], *LINES[label], place, scale) for place, label in enumerate(LINES)]
    style = _style(parts, scale)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="#1d2126">',
            "<title>Accuracy along a stream of digits, with and without attakit</title>",
            f"<style>{style}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fff" stroke="#e2e0d9"/>',
            _text(LEFT, 30, "trained on", "soft"),
            _tiles(data.source_train, LEFT, 40),
            *shifts,
            *(_grid(percent, scale) for percent in (20, 40, 60, 80, 100)),
            f'<clipPath id="seen"><rect class="wipe" x="{LEFT}" y="0" width="{RIGHT - LEFT}" '
            f'height="{HEIGHT}"/></clipPath>',
            *lines,
            f'<line class="now" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{BOTTOM}" stroke="#1d2126" '
            'stroke-dasharray="2 3"/>',
            _text(LEFT, BOTTOM + 24, f"accuracy, mean of {len(groups[first.label])} runs", "soft"),
            _text(RIGHT, BOTTOM + 24, f"{scale.samples:,} images, one after the other", "end soft"),
            "</svg>\n",
        ]
    )


def _line(runs: Sequence[RunRecord], name: str, colour: str, place: int, scale: Scale) -> str:
    curve = average(runs, smoothed_accuracy)
    ends = [run.end for run in runs if run.end is not None]
    points = " ".join(
        f"{scale.x(seen):.1f},{scale.y(value):.1f}"
        for seen, value in zip([0, *curve.x], [curve.y[0], *curve.y], strict=True)
        if value is not None
    )
    total = fmean(end["stream_accuracy"] for end in ends)
    words = name.format(labels=fmean(end["labels"] for end in ends))
    across, up = LEFT + 232 * place + (36 if place else 0), 122
    return "\n".join(
        [
            f'<polyline clip-path="url(#seen)" points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="{2 if place else 3.5}" stroke-linejoin="round"/>',
            f'<rect x="{across}" y="{up - 9}" width="14" height="4" rx="2" fill="{colour}"/>',
            _text(across + 20, up, words),
            _text(across + 20, up + 18, f"{total:.1f} % right", "soft"),
        ]
    )


def _shift(band: Band, scale: Scale, samples: Samples, parts: Sequence[Band]) -> str:
    left, right = scale.x(band.start), scale.x(band.stop)
    place = parts.index(band)
    shade = f'<rect x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" height="{BOTTOM - TOP}"'
    start = LEFT + 380
    return "\n".join(
        [
            f'{shade} fill="{"#f6f5f1" if place % 2 == 0 else "#ebe9e1"}"/>',
            _text((left + right) / 2, BOTTOM - 8, band.name, "middle soft"),
            f'<g class="domain-{place}">',
            _text(start, 30, f"meets now: {band.name}", "soft"),
            _tiles(samples, start, 40),
            "</g>",
        ]
    )


def _tiles(samples: Samples, left: float, top: float) -> str:
    """A few digits in a row, as different as their numbers in the domain are."""
    chosen = [number * len(samples) // SHOWN for number in range(SHOWN)]
    pictures = [encode_picture(pixels, [MEAN], [STD]) for pixels in samples.load(chosen)]
    return "\n".join(
        f'<image x="{left + place * (SIDE + 6)}" y="{top}" width="{SIDE}" height="{SIDE}" '
        f'href="data:image/png;base64,{picture}"/>'
        for place, picture in enumerate(pictures)
    )


def _grid(percent: int, scale: Scale) -> str:
    height = scale.y(percent)
    line = f'<line x1="{LEFT}" x2="{RIGHT}" y1="{height}" y2="{height}" stroke="#d5d2c8"/>'
    return line + _text(LEFT - 8, height + 4, f"{percent} %", "end soft")


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>'


def _style(parts: Sequence[Band], scale: Scale) -> str:
    """Keyframes: lines appear from left to right, and each domain's digits while it lasts."""
    shift = RIGHT - LEFT
    rules = [
        ".soft{fill:#5c6570}.middle{text-anchor:middle}.end{text-anchor:end}",
        f".wipe{{transform-origin:{LEFT}px 0;animation:wipe {SECONDS}s linear infinite}}",
        f"@keyframes wipe{{0%{{transform:scaleX(0)}}{DRAWN}%,100%{{transform:scaleX(1)}}}}",
        f".now{{animation:now {SECONDS}s linear infinite}}",
        f"@keyframes now{{{DRAWN}%,100%{{transform:translateX({shift}px)}}}}",
    ]
    for place, band in enumerate(parts):
        begin = DRAWN * band.start / scale.samples
        end = 100.0 if band is parts[-1] else DRAWN * band.stop / scale.samples
        shown = f"{begin:.2f}%,{end - 0.01:.2f}%{{opacity:1}}"
        hidden = f"{max(begin - 0.01, 0):.2f}%,{end:.2f}%,100%{{opacity:0}}"
        rules.append(
            f".domain-{place}{{animation:domain-{place} {SECONDS}s step-end infinite}}"
            f"@keyframes domain-{place}{{0%{{opacity:0}}{hidden}{shown}}}"
        )
    still = ",".join([".wipe", ".now", *(f".domain-{place}" for place in range(len(parts)))])
    rules.append(f"@media(prefers-reduced-motion:reduce){{{still}{{animation:none}}}}")
    rules.append("@media(prefers-reduced-motion:reduce){.domain-0,.domain-1,.now{display:none}}")
    return "".join(rules)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the runs of `make demo`")
    parser.add_argument("--out", type=Path, default=Path("demo.svg"), help="file to write")
    options = parser.parse_args()
    options.out.write_text(
        draw([read_run(path) for path in find_runs([options.folder])]), encoding="utf-8"
    )
    print(f"Wrote {options.out} ({options.out.stat().st_size / 1000:.0f} kB).")


if __name__ == "__main__":
    main()
