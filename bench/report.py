"""Reports: one HTML file that needs nothing beside it, with facts, tables and drawings; and the drawings as PNG."""

import functools
import html
import io
import math
import re
import time

import common

RC = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial"], "font.size": 9,
    "axes.grid": True, "grid.color": "#e3e6ea", "axes.edgecolor": "#9aa3ad", "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "xtick.color": "#4c5560", "ytick.color": "#4c5560",
    "axes.labelcolor": "#4c5560", "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
}  # fmt: skip
# Told apart by all eyes; from the second ten on, lines are dashed.
COLOURS = [
    "#0b6fa4",
    "#d1495b",
    "#2e933c",
    "#8a4fbe",
    "#e08e0b",
    "#17a2a2",
    "#7f5539",
    "#e377c2",
    "#5b6770",
    "#a8b400",
]
BAND_COLOURS = ["#eef4f8", "#fbf3e8", "#eff7ef", "#f6effa", "#f8eeee"]
LOG_FROM = 100  # a panel whose values are further apart has a logarithmic scale
POINTS_MAX = 500  # more than a panel has pixels

STYLE = """
body { font: 15px/1.45 system-ui, "DejaVu Sans", Arial, sans-serif; color: #20262d; margin: 2rem auto; max-width: 1500px;
  padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .8rem .28rem 0; text-align: right; border-bottom: 1px solid #e3e6ea; vertical-align: top; }
th { color: #4c5560; font-weight: 600; } th:first-child, td:first-child, td.text { text-align: left; }
.wide { overflow-x: auto; }
.warning { background: #fff3d6; border-left: 4px solid #e08e0b; padding: .5rem .9rem; margin: .8rem 0; }
.lead { color: #4c5560; margin: 0 0 1rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 1rem; }
.panels svg, .figure svg { width: 100%; height: auto; display: block; } .figure { max-width: 1000px; }
"""


@functools.cache
def pyplot():
    """matplotlib, which takes a second to come: for those only who draw."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("drawings need python3-matplotlib: run deps/install.sh bench") from None
    matplotlib.use("agg")
    matplotlib.rcParams |= RC
    from matplotlib import pyplot as found

    return found


def short(value, _=None):
    """A number for an axis: 12k, 3.4M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def thinned(points, take=None):
    """At most POINTS_MAX of (x, y), each for a stretch of them: their mean, or what `take` makes of the ys."""
    step = -(-len(points) // POINTS_MAX)
    if step <= 1:
        return points
    take = take or (lambda ys: sum(ys) / len(ys))
    found = []
    for at in range(0, len(points), step):
        known = [y for _, y in points[at : at + step] if not math.isnan(y)]
        found.append((points[min(at + step, len(points)) - 1][0], take(known) if known else math.nan))
    return found


def over_time(axis, title, points, bands, peaks=False):
    """A panel: points are (seconds, value or NaN for what is not known); bands are (name, begin, end)."""
    axis.set_title(title)
    for number, (_, begin, end) in enumerate(bands):
        axis.axvspan(begin, end, color=BAND_COLOURS[number % len(BAND_COLOURS)], linewidth=0, zorder=0)
    if bands:
        axis.set_xlim(bands[0][1], bands[-1][2])
    known = [y for _, y in points if not math.isnan(y)]
    if known:
        xs, ys = zip(*thinned(points, max if peaks else None))
        alone = len(known) < 4 or len(known) < len(points) / 2
        axis.plot(xs, ys, color=COLOURS[0], linewidth=1.1, marker="o" if alone else None, markersize=2.5)
        if min(known) > 0 and max(known) > LOG_FROM * min(known):
            axis.set_yscale("log")
            axis.set_ylim(min(known) / 2, max(known) * 4)
        else:
            axis.set_ylim(0, 1.18 * max(known) or 1)  # room for the names of the bands
    else:
        axis.text(0.5, 0.5, "not known here", transform=axis.transAxes, ha="center", va="center", color="#7b8490")
        axis.set_yticks([])
    axis.yaxis.set_major_formatter(short)
    axis.yaxis.set_minor_formatter("")
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axis.margins(x=0)


def name_bands(axis, bands):
    """The names of the bands over a panel."""
    width = bands[-1][2] - bands[0][1] if bands else 0
    for name, begin, end in bands:
        if end - begin > 0.12 * width:
            axis.text((begin + end) / 2, 0.98, name, transform=axis.get_xaxis_transform(), ha="center", va="top",
                      fontsize=7.5, color="#7b8490")  # fmt: skip


def panels(title, series, bands, path):
    """Sixteen of them, or how many there are: as one PNG at `path`, and as a list of SVGs.

    series: (title, points, whether its peaks are what counts).
    """
    columns = 4
    rows = -(-len(series) // columns)
    figure, axes = pyplot().subplots(rows, columns, figsize=(5 * columns, 2.7 * rows), squeeze=False)
    for axis in axes.flat[len(series) :]:
        axis.set_visible(False)
    for axis, (name, points, peaks) in zip(axes.flat, series):
        over_time(axis, name, points, bands, peaks)
    name_bands(axes.flat[0], bands)
    for axis in axes[-1]:
        axis.set_xlabel("seconds of measuring")
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    figure.savefig(path, dpi=90)
    pyplot().close(figure)
    drawn = []
    for name, points, peaks in series:
        figure, axis = pyplot().subplots(figsize=(4.6, 2.5))
        over_time(axis, name, points, bands, peaks)
        name_bands(axis, bands)
        figure.tight_layout()
        drawn.append(_svg(figure))
    return drawn


def curves(title, xlabel, ylabel, lines, path, log_x=True):
    """One drawing of several lines, name -> [(x, y)]: as PNG at `path`, and as SVG."""
    figure, axis = pyplot().subplots(figsize=(10, 5))
    ticks = sorted({x for points in lines.values() for x, _ in points})
    for number, (name, points) in enumerate(lines.items()):
        dashes = "--" if number >= len(COLOURS) else "-"
        if points:
            axis.plot(
                *zip(*points), dashes, color=COLOURS[number % len(COLOURS)], marker="o", markersize=4, label=name
            )
    axis.set_title(title)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    if log_x and len(ticks) > 1:
        axis.set_xscale("log")
    axis.set_xticks(ticks)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(short)
    if len(lines) > 1:
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    return _svg(figure)


def _svg(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    pyplot().close(figure)
    drawn = text.getvalue()
    return re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.S)


def table(headers, rows, text_columns=()):
    """text_columns: those that are read and not compared; the first is one of them anyway."""
    head = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in headers)
    body = ""
    for row in rows:
        cells = ((' class="text"' if number in text_columns else "", html.escape(str(cell)))
                 for number, cell in enumerate(row))  # fmt: skip
        body += "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in cells) + "</tr>\n"
    head = f"<tr>{head}</tr>" if any(headers) else ""
    return f'<div class="wide"><table>{head}\n{body}</table></div>'


def page(path, title, lead, facts, sections):
    """sections: (heading, HTML), as table() and figure() and grid() make it."""
    warning = common.busy_warning(facts)
    parts = [f"<h1>{html.escape(title)}</h1>", f'<p class="lead">{html.escape(lead)}</p>']
    if warning:
        parts.append(f'<p class="warning">{html.escape(warning)}</p>')
    for heading, content in sections:
        parts += [f"<h2>{html.escape(heading)}</h2>", content]
    rows = [*facts.items(), ("report of", time.strftime("%Y-%m-%d %H:%M"))]
    parts += ["<h2>Where this was measured</h2>", table(("", ""), rows, text_columns=(1,))]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
                   f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style></head>\n'
                   f"<body>\n{chr(10).join(parts)}\n</body></html>\n")  # fmt: skip


def figure(svg):
    return f'<div class="figure">{svg}</div>'


def grid(svgs):
    return f'<div class="panels">{"".join(f"<div>{svg}</div>" for svg in svgs)}</div>'
