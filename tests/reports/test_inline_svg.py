import functools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import truthcal as tc
from truthcal import plots
from truthcal.reports.inline_svg import Stylesheet, compact_path, inline_svg, round_numbers
from truthcal.results.text import clean_text

pytest.importorskip("matplotlib", reason="figures are drawn with matplotlib")
from truthcal.plots.svg import INK, figure_svg

SVG = "{http://www.w3.org/2000/svg}"
NAME = "a<b>&\"c' $x^2$ \x07\n\ud800"


def draw(ax):
    ax.plot([0, 1], [0, 1], "--", label=clean_text(NAME))
    ax.fill_between(np.linspace(0, 1, 500), 0, np.linspace(0, 1, 500), alpha=0.2)
    ax.scatter([0.1, 0.9], [0.2, 0.3])
    ax.set_title("title", rotation=3)
    ax.legend()


@functools.cache
def saved():
    """The figure as a file, drawn once for all tests."""
    return figure_svg(draw)


def inlined(name="f1", sheet=None):
    sheet = sheet or Stylesheet({INK: "var(--ink)"})
    text = inline_svg(saved(), name=name, title=NAME, description="what <it> shows", sheet=sheet)
    return text, ET.fromstring(text), sheet


def test_inline_svg_is_well_formed_and_has_nothing_of_a_file():
    text, tree, _ = inlined()
    assert tree.tag == "svg"
    assert tree.attrib.keys() == {"viewBox", "role", "aria-labelledby"}
    for unwanted in ("<?xml", "DOCTYPE", "metadata", "xlink", "xmlns", "style=", "<style", "font-family"):
        assert unwanted not in text
    assert [float(x) for x in tree.get("viewBox").split()][:3] == [0, 0, pytest.approx(5.2 * 72, abs=5)]


def test_inline_svg_is_named_and_described():
    _, tree, _ = inlined()
    assert tree.get("role") == "img"
    labelled = {element.get("id"): element.text for element in tree[:2]}
    assert list(labelled) == tree.get("aria-labelledby").split()
    assert list(labelled.values()) == ["a<b>&\"c' $x^2$ \ufffd\n\ufffd", "what <it> shows"]


def test_inline_svg_keeps_text_as_text():
    _, tree, _ = inlined()
    texts = [element.text for element in tree.iter("text")]
    assert "title" in texts
    assert any("a<b>&\"c' $x^2$" in text for text in texts)


def test_ids_are_those_referred_to_and_unlike_those_of_another_figure():
    sheet = Stylesheet({})
    (first, tree, _), (second, _, _) = inlined("f1", sheet), inlined("f2", sheet)
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    referred = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", first)) | set(tree.get("aria-labelledby").split())
    assert referred == ids[0]
    assert first.replace("f1-", "f2-") == second


def test_styles_become_classes_with_the_ink_of_the_page():
    text, tree, sheet = inlined()
    rules = dict(re.findall(r"\.(s\d+)\{([^}]*)\}", sheet.css()))
    used = {name for element in tree.iter() if (name := element.get("class"))}
    assert used <= set(rules)
    assert INK not in sheet.css() + text
    ink = {name for name, rule in rules.items() if "fill:var(--ink)" in rule}
    assert {element.get("class") for element in tree.iter("text")} <= ink


def test_stylesheet_refuses_what_is_no_plain_value():
    sheet = Stylesheet({})
    name = sheet.class_of(
        "fill: red; stroke: url(javascript:x); position: fixed; stroke-width: 1.23456; opacity: 1}</style>"
    )
    assert sheet.css() == f".{name}{{fill:red;stroke-width:1.23}}"
    assert sheet.class_of("fill:red; stroke-width:1.2345") == name
    assert sheet.class_of("font-family: serif") == ""


def test_stylesheet_reads_fonts_of_older_matplotlib():
    sheet = Stylesheet({})
    sheet.class_of("font: italic 700 10.5px 'DejaVu Sans', sans-serif; text-anchor: end")
    assert sheet.css() == ".s0{font-size:10.5px;font-style:italic;font-weight:700;text-anchor:end}"


def test_figure_svg_is_the_same_again_and_leaves_settings_alone():
    import matplotlib

    first, before = saved(), dict(matplotlib.rcParams)
    assert figure_svg(draw) == first
    assert dict(matplotlib.rcParams) == before


def test_figure_svg_is_quiet_about_letters_its_font_lacks():
    assert "\u6f22\u5b57" in figure_svg(lambda ax: ax.set_title("\u6f22\u5b57 \U0001f600"))


# --- paths ------------------------------------------------------------------------------------------------------------


def points_of(d):
    """Slow: the vertices of a path of M, l and z."""
    x = y = 0.0
    vertices = []
    for command, rest in re.findall(r"([Ml])([^Mlz]*)", d):
        numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
            x, y = (dx, dy) if command == "M" else (x + dx, y + dy)
            vertices.append((x, y))
    return np.array(vertices)


def away_from(point, line):
    """The distance of a point from a polyline."""
    start, step = line[:-1], np.diff(line, axis=0)
    length = np.sum(step**2, axis=1)
    along = np.sum((point - start) * step, axis=1) / np.where(length > 0, length, 1)
    return np.hypot(*(start + np.clip(along, 0, 1)[:, None] * step - point).T).min()


def written(points):
    return "M " + " \nL ".join(f"{x} {y}" for x, y in points) + " \n"


def converted(content, sheet=None):
    start = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'
    return inline_svg(f"{start}{content}</svg>", name="f", title="t", description="d", sheet=sheet or Stylesheet({}))


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("kind", ["line", "area"])
def test_saved_line_or_area_has_fewer_points_and_looks_the_same(kind, scale):
    x, y = np.linspace(0.01, 1, 800), np.cumsum(np.random.default_rng(0).normal(0, 0.1, 800))

    def draw(ax):
        ax.set_xscale(scale)
        (ax.plot(x, y)[0] if kind == "line" else ax.fill_between(x, y, -40)).set_gid("shape")
        ax.scatter(x, y).set_gid("points")  # these keep their places

    def places(element):
        return np.array([[float(use.get("x")), float(use.get("y"))] for use in element.iter(f"{SVG}use")])

    tree = ET.fromstring(figure_svg(draw))
    shape, points = (tree.find(f".//*[@id='{name}']") for name in ("shape", "points"))
    line = points_of(compact_path(next(shape.iter(f"{SVG}path")).get("d")))
    shift = places(shape) if shape.find(f".//{SVG}use") is not None else 0.0
    assert len(places(points)) == 800
    assert 50 < len(line) < 600
    assert max(away_from(point, line + shift) for point in places(points)) < 0.8  # points: less than a pixel


def test_figure_of_many_rows_is_small():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    display = plots.BiasCurveDisplay(tc.cumulative_bias_curve(rng.random(100_000) < p, p), tc.bias_band(p, rng=0))
    svg = inline_svg(figure_svg(display.plot), name="f", title="t", description="d", sheet=Stylesheet({}))
    assert len(svg) < 10_000


def test_compact_path_rounds_without_drifting():
    rng = np.random.default_rng(0)
    points = np.column_stack([np.cumsum(rng.random(300)), 200 + np.cumsum(rng.normal(0, 0.3, 300))])
    for end in ("", "z"):
        short = compact_path(written(points) + end)
        assert short.endswith("z") == bool(end)
        np.testing.assert_allclose(points_of(short)[-1], points[-1], atol=0.051)
        assert max(away_from(point, points_of(short)) for point in points) < 0.08  # half a tenth, both ways
        assert len(short) < 0.25 * len(written(points))


def test_compact_path_of_a_circle_is_two_half_circles():
    from matplotlib.path import Path

    for x, y, radius in ((10.0, 20.0, 3.0), (0.0, 0.0, 5.0)):
        d = ""
        for vertices, code in Path.circle((x, y), radius).iter_segments():
            letter = {1: "M", 4: "C", 79: "z"}[int(code)]
            d += letter + "".join(f" {number:g}" for number in vertices if letter != "z") + " \n"
        arc = f"a{radius:g} {radius:g} 0 1 0 0"
        assert compact_path(d) == f"M{x:g} {y - radius:g}{arc} {2 * radius:g}{arc} -{2 * radius:g}z"


def test_neighbouring_paths_of_one_look_become_one():
    text = converted(
        '<g><g id="a"><path d="M 1 1 L 2 2" style="stroke: red"/></g>'
        '<g id="b"><path d="M 3 3 L 4 3" style="stroke: red"/></g><path d="M 5 5 L 6 6" style="stroke: blue"/></g>'
    )
    assert re.findall("<path[^>]*>", text) == [
        '<path d="M1 1l1 1M3 3l1 0" class="s0"/>',
        '<path d="M5 5l1 1" class="s1"/>',
    ]


def test_groups_stay_what_others_refer_to():
    text = converted('<defs><g id="a"><path d="M 1 1 L 2 2"/></g></defs><g><use href="#a" x="1.234"/></g>')
    assert text.endswith('<defs><g id="f-0"><path d="M1 1l1 1"/></g></defs><use href="#f-0" x="1.23"/></svg>')


def test_marks_keep_their_own_look_where_they_are_used():
    sheet = Stylesheet({})
    text = converted(
        '<g><defs><path id="m" d="M 0 0 L 0 3.5" style="stroke: red"/></defs>'
        '<use xlink:href="#m" x="1" y="2" style="stroke: blue; fill: green"/><text>1</text></g>',
        sheet,
    )
    assert text.endswith(
        '<defs><path id="f-0" d="M0 0l0 3.5" class="s0"/></defs><use href="#f-0" x="1" y="2" class="s1"/>'
        "<text>1</text></svg>"
    )
    assert sheet.css() == ".s0{stroke:red}\n.s1{fill:green;stroke:blue}"


def test_what_draws_nothing_is_left_out():
    assert converted('<g id="a"><path d="M 1 1 L 2 2" style="fill: none"/><g/></g>').endswith("</desc></svg>")


@pytest.mark.parametrize(
    ("d", "short"),
    [
        ("M 1.005 2 L 1.5 2 L 1.5 -3.256 z", "M1 2l.5 0 0-5.3z"),
        ("M 1 1 L 2 2 M 5 5 L 5 6 ", "M1 1l1 1M5 5l0 1"),
        ("M 1e-7 1 L -2 1.5e-3 ", "M0 1l-2-1"),
        ("M 1 1 \nL 1.02 1.04 \nL 2 2", "M1 1l0 0 1 1"),
        ("M 1 1 \nL 1.02 1.04 \nM 5 5 \nL 6 6", "M1 1l0 0M5 5l1 1"),
        ("M 1 1 \nM 5 5 \nL 6 6", "M1 1M5 5l1 1"),
        ("M 0 1.23456 \nC 0 1 2 3 4.5678 5 \nz", "M0 1.2c0-.2 2 1.8 4.6 3.8z"),
    ],
)
def test_compact_path_as_written(d, short):
    assert compact_path(d) == short


def test_round_numbers_keeps_colours_and_whole_numbers():
    assert round_numbers("rotate(-90 10.597896 -0.004) #012345 12 0.5") == "rotate(-90 10.6 0) #012345 12 0.5"
