"""From the SVG files of matplotlib to figures inside a page: small, styled by the page, with ids of their own."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from truthcal.reports.sanitize import clean
from truthcal.reports.svg_paths import compact, rounded, shifted

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
# What may stand in a style: all else is the page's to choose, the font first of all.
_PROPERTIES = frozenset(
    [
        "fill",
        "fill-opacity",
        "fill-rule",
        "font-size",
        "font-style",
        "font-weight",
        "opacity",
        "stroke",
        "stroke-dasharray",
        "stroke-dashoffset",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
    ]
)
_NUMBERS = frozenset(["x", "y", "width", "height", "cx", "cy", "r"])
_SAFE_VALUE = re.compile(r"[\w#.,%() +-]+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"(?P<style>italic|oblique)?\s*(?P<weight>bold|[1-9]00)?\s*(?P<size>[\d.]+px)")
_UPRIGHT = re.compile(r"rotate\(-?0(?:\.0)? [^)]*\)")


class Stylesheet:
    """The styles of all figures of a page as classes, each once. `colours`: what stands for a colour of the file."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self._colours = {colour.lower(): value for colour, value in colours.items()}
        self._names: dict[str, str] = {}

    def name_of(self, style: str) -> str:
        """The class that has this style; "" if nothing is left of it."""
        rules = ";".join(f"{name}:{value}" for name, value in sorted(self._declarations(style).items()))
        return self._names.setdefault(rules, f"s{len(self._names)}") if rules else ""

    def _declarations(self, style: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in style.split(";"):
            name, _, value = (piece.strip() for piece in part.partition(":"))
            if name == "font" and (font := _FONT.match(value)):  # matplotlib before 3.9 has all in one
                found |= {f"font-{key}": own for key, own in font.groupdict().items() if own}
            elif name in _PROPERTIES and _SAFE_VALUE.fullmatch(value):
                found[name] = self._colours.get(value.lower(), rounded(value))
        if found.get("stroke-dashoffset") == "0":
            del found["stroke-dashoffset"]
        return found

    def css(self) -> str:
        """The rules of all classes so far."""
        return "\n".join(f".{name}{{{rules}}}" for rules, name in self._names.items())


def inline_svg(svg: str, *, name: str, title: str, description: str, sheet: Stylesheet) -> str:
    """An SVG file as an element of an HTML page.

    Parameters
    ----------
    svg : str
        The file, as `figure_svg` makes it.
    name : str
        What its ids begin with; unlike those of all other figures of the page.
    title, description : str
        What it is and what it shows, for those who do not see it.
    sheet : Stylesheet
        Takes its styles.
    """
    tree = ET.fromstring(clean(svg))
    for child in list(tree):
        if child.tag != f"{_SVG}g" and child.tag != f"{_SVG}defs":
            tree.remove(child)
    _place_marks(tree)
    ids = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(_referred(tree)))}
    parts = _joined([kept for child in tree for kept in _kept(child, ids, sheet)])
    root = ET.Element("svg", {"viewBox": rounded(tree.attrib["viewBox"]), "role": "img"})
    root.set("aria-labelledby", f"{name}-t {name}-d")
    for tag, text in (("title", title), ("desc", description)):
        label = ET.SubElement(root, tag, {"id": f"{name}-{tag[0]}"})
        label.text = clean(text)
    root.extend(parts)
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")  # text and attributes hold no bare >


def _place_marks(tree: ET.Element) -> None:
    """Puts marks and ticks where they are used, each as a path of its own: that is shorter than a reference."""
    marks = {path.get("id"): path for path in tree.iter(f"{_SVG}path") if "id" in path.attrib}
    for used in tree.iter(f"{_SVG}use"):
        mark = marks.get(used.get(_HREF, used.get("href", ""))[1:])
        if mark is None or "transform" in used.attrib:
            continue
        place = float(used.get("x", "0")), float(used.get("y", "0"))
        style = f"{used.get('style', '')};{mark.get('style', '')}"  # what the mark says of itself comes first in SVG
        clip = {key: value for key, value in used.attrib.items() if key == "clip-path"}
        used.tag, used.attrib = f"{_SVG}path", {"d": shifted(mark.attrib["d"], *place), **clip, "style": style}
    for defs in tree.iter(f"{_SVG}defs"):
        kept = set(_referred(tree))
        for child in [child for child in defs if child.tag == f"{_SVG}path" and child.get("id") not in kept]:
            defs.remove(child)


def _referred(tree: ET.Element) -> list[str]:
    """Ids that something refers to, in order: only these stay."""
    found = []
    for element in tree.iter():
        found += [value[1:] for key, value in element.items() if key in (_HREF, "href")]
        found += [old for value in element.attrib.values() for old in _REFERENCE.findall(value)]
    return found


def _kept(element: ET.Element, ids: Mapping[str, str], sheet: Stylesheet) -> list[ET.Element]:
    """The element as the page has it; without what draws nothing, and its children where it only held them."""
    tag = element.tag.removeprefix(_SVG)
    attributes = _attributes(element, ids, sheet)
    children = _joined([kept for child in element if child.tag != f"{_SVG}style" for kept in _kept(child, ids, sheet)])
    if tag in ("g", "defs") and not children:
        return []
    if tag == "g" and not attributes:
        return children
    if tag == "path" and (not attributes.get("d") or _invisible(element)):
        return []
    kept = ET.Element(tag, attributes)
    kept.text = (element.text or "") if tag in ("text", "tspan") else None
    kept.extend(children)
    return [kept]


def _joined(elements: list[ET.Element]) -> list[ET.Element]:
    """Neighbouring paths of the same look as one path, over the text between ticks."""
    found: list[ET.Element] = []
    for element in elements:
        before = next((other for other in reversed(found) if other.tag != "text"), None)
        own = {**element.attrib, "d": ""}
        if element.tag == "path" and "id" not in own and before is not None and {**before.attrib, "d": ""} == own:
            before.attrib["d"] += element.attrib["d"]
        else:
            found.append(element)
    return found


def _attributes(element: ET.Element, ids: Mapping[str, str], sheet: Stylesheet) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in element.items():
        if key == "id":
            found |= {"id": ids[value]} if value in ids else {}
        elif key in (_HREF, "href"):
            found["href"] = f"#{ids[value[1:]]}"
        elif key == "style":
            found |= {"class": own} if (own := sheet.name_of(value)) else {}
        elif key == "d":
            found["d"] = compact(value)
        elif key == "transform":
            found |= {} if _UPRIGHT.fullmatch(value) else {"transform": rounded(value)}
        elif key in _NUMBERS:
            found[key] = rounded(value)
        else:
            found[key] = _REFERENCE.sub(lambda match: f"url(#{ids[match[1]]})", value)
    return found


def _invisible(path: ET.Element) -> bool:
    """Whether it has neither fill nor stroke: matplotlib draws its transparent ground all the same."""
    style = path.get("style", "").replace(" ", "")
    return "fill:none" in style and ("stroke:" not in style or "stroke:none" in style)
