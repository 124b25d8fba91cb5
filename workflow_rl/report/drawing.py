"""What a figure is, and how it is drawn: by plotly on the page, by matplotlib in a paper (extra: figures).

A figure with categories is drawn on paper only: on the page the rows of a table show the same.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workflow_rl.errors import MissingExtraError, install_hint
from workflow_rl.runs import Json

# Okabe and Ito's colours, which colour-blind readers can distinguish; symbols and letters repeat what they say.
BLUE, ORANGE, GREEN, PINK, AMBER, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
GREY = "#8a929c"
INKS = {  # their names in report.css, which has shades of them for light and for dark paper
    BLUE: "--blue", ORANGE: "--red", GREEN: "--green", PINK: "--pink", AMBER: "--amber", SKY: "--sky", GREY: "--faint",
}  # fmt: skip
MARKERS = {"circle": "o", "x": "x", "triangle-up-open": "^", "line-ew-open": "_"}  # plotly's and matplotlib's names
WIDTHS = {"line": 1.0, "steps": 1.5}  # on paper, in points


@dataclass(frozen=True)
class Series:
    """Marks that share a name and a style."""

    name: str  # in the legend; empty: not listed
    x: Sequence[Any]
    y: Sequence[Any]
    colour: str | Sequence[str] = BLUE
    kind: Literal["points", "bars", "line", "steps"] = "points"
    symbol: str = "circle"  # plotly's name of it
    size: int = 9
    errors: Sequence[float] | None = None  # along x if the figure has categories, else along y
    band: Sequence[tuple[float, float]] = ()  # lowest and highest value at each point of a line
    scale: Sequence[float] = ()  # numbers shown by a colour scale instead of ``colour``
    texts: Sequence[str] = ()  # one per mark, under the pointer
    hover: str = ""  # plotly's template of the words under the pointer
    extra: Sequence[Sequence[Any]] = ()  # further values for ``hover``


@dataclass(frozen=True)
class Figure:
    """One figure: its marks and axes, its caption, its size on the page and on paper."""

    caption: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    categories: Sequence[str] = ()  # names along y, from the bottom
    steps: int = 0  # whole numbers along x, if it counts something
    height: int = 400  # pixels
    file: str = ""  # exported under this name, together with the others that have it; empty: not exported
    inches: float = 3.2  # height in that file

    @property
    def has_legend(self) -> bool:
        """Do its marks have names, and not too many?"""
        return 0 < len({series.name for series in self.series} - {""}) <= len(PALETTE)


def to_plotly(figure: Figure) -> Json:
    """A figure without categories as plotly's plain dictionary of data and layout; the library is not needed for it."""
    data = [trace for series in figure.series for trace in _traces(series)]
    x: Json = {"title": {"text": figure.x_label}}
    y: Json = {"title": {"text": figure.y_label}}
    if 0 < figure.steps <= 10:
        x["dtick"] = 1
    if not figure.x_label:  # places without units
        x = {"showticklabels": False, "zeroline": False, "showgrid": False}
        y = x | {"scaleanchor": "x"}
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    layout = {"xaxis": x, "yaxis": y, "height": figure.height, "showlegend": figure.has_legend, "legend": legend}
    return {"data": data, "layout": layout}


def _traces(series: Series) -> list[Json]:
    """A series as a trace, after its band if it has one."""
    trace: Json = {"type": "scatter", "name": series.name, "x": series.x, "y": series.y, "legendgroup": series.name}
    trace |= {"text": series.texts} if series.texts else {}
    trace |= {"customdata": series.extra} if series.extra else {}
    trace |= {"hovertemplate": f"{series.hover}<extra></extra>"} if series.hover else {}
    if series.errors is not None:
        trace["error_y"] = {"type": "data", "array": series.errors, "thickness": 1.5, "color": series.colour}
    if series.kind in ("line", "steps"):
        line = {"color": series.colour, "width": 2, "shape": "hv" if series.kind == "steps" else "linear"}
        return [*_band(series), trace | {"mode": "lines", "line": line}]
    marker: Json = {"color": series.colour, "symbol": series.symbol, "size": series.size}
    if series.scale:
        bar = {"title": {"text": "expected return"}, "orientation": "h", "y": 0, "yanchor": "top", "thickness": 12}
        marker |= {"color": series.scale, "colorscale": [[0, ORANGE], [1, BLUE]], "colorbar": bar}
    if "open" in series.symbol:
        marker["line"] = {"width": 2, "color": series.colour}
    return [trace | {"mode": "markers", "marker": marker}]


def _band(series: Series) -> list[Json]:
    """The range around a line as a closed area."""
    if not series.band:
        return []
    low, high = zip(*series.band, strict=True)
    area = {"x": [*series.x, *reversed(series.x)], "y": [*high, *reversed(low)]}
    look = {"fill": "toself", "fillcolor": series.colour, "opacity": 0.25, "mode": "none", "hoverinfo": "skip"}
    return [{"type": "scatter", "legendgroup": series.name, "showlegend": False} | area | look]


def to_paper(panels: Sequence[Figure], kind: str) -> bytes:
    """Figures below each other in one file of a kind that matplotlib knows: svg, pdf."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Sheet
    except ImportError:
        raise MissingExtraError(f"figures need matplotlib; {install_hint('figures')}.") from None
    matplotlib.rcParams.update({"svg.hashsalt": "workflow_rl", "svg.fonttype": "none", "font.size": 9})
    sheet = Sheet((6.5, sum(panel.inches for panel in panels)), layout="constrained")
    rows = sheet.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(rows, panels, strict=True):
        _draw_panel(axes, panel)
    rows[-1].set_xlabel(panels[-1].x_label)
    if panels[0].has_legend:
        rows[0].legend()
    buffer = io.BytesIO()
    sheet.savefig(buffer, format=kind, metadata={"Date" if kind == "svg" else "CreationDate": None})
    return buffer.getvalue()


def _draw_panel(axes: Any, figure: Figure) -> None:
    listed: set[str] = {""}
    for one in figure.series:
        y = [figure.categories.index(name) for name in one.y] if figure.categories else _numbers(one.y)
        style: Json = {"color": one.colour}
        if figure.has_legend and one.name not in listed:
            style["label"] = one.name
            listed.add(one.name)
        if one.errors is not None:
            style["xerr" if figure.categories else "yerr"] = one.errors
        if one.kind == "bars":
            axes.barh(y, one.x, **style)
        elif one.kind == "points":
            axes.errorbar(one.x, y, fmt=MARKERS[one.symbol], mfc="none" if "open" in one.symbol else None, **style)
        else:
            if one.band:
                axes.fill_between(one.x, *zip(*one.band, strict=True), color=one.colour, alpha=0.25, linewidth=0)
            drawn = "steps-post" if one.kind == "steps" else "default"
            axes.plot(one.x, y, drawstyle=drawn, linewidth=WIDTHS[one.kind], **style)
    if figure.categories:
        axes.set_yticks(range(len(figure.categories)), figure.categories)
    if figure.steps:
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(figure.y_label)


def _numbers(values: Sequence[float | None]) -> list[float]:
    """The same with NaN where there is no value."""
    return [float("nan") if value is None else value for value in values]
