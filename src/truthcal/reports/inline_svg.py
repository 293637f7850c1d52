"""Inline SVG figures: matplotlib's files with styles as classes of one stylesheet, unique ids and rounded numbers."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping

from truthcal.results.text import clean_text

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
# Style properties that a figure may set; the page sets all others, such as the font family.
_PROPERTY = re.compile(
    "fill(-opacity|-rule)?|font-(size|style|weight)|opacity|"
    "stroke(-dasharray|-dashoffset|-linecap|-linejoin|-opacity|-width)?|text-anchor"
)
_SAFE_VALUE = re.compile(r"[\w#.,%() +-]+")
_FONT = re.compile(r"(?P<style>italic|oblique)?\s*(?P<weight>bold|[1-9]00)?\s*(?P<size>[\d.]+px)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_NO_ROTATION = re.compile(r"rotate\(-?0(\.0)? [^)]*\)")
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
_COMMAND = re.compile(r"([MLCQz])([^MLCQz]*)")
# A circle, which matplotlib draws as eight curves: x and y of its lowest point, y of its highest.
_CIRCLE = re.compile(r"M (\S+) (\S+)\s+(?:C[^C]*){3}C(?: \S+){5} (\S+)\s+(?:C[^CL]*){4}(?:L[^z]*)?z\s*")


class Stylesheet:
    """CSS classes for the styles of all figures of a page. `colours` maps colours of the files to CSS values."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self._colours = {colour.lower(): value for colour, value in colours.items()}
        self._classes: dict[str, str] = {}

    def class_of(self, style: str) -> str:
        """Return the class for a style attribute, or "" if the style sets no allowed property."""
        rules = ";".join(f"{name}:{value}" for name, value in sorted(self._declarations(style).items()))
        return self._classes.setdefault(rules, f"s{len(self._classes)}") if rules else ""

    def _declarations(self, style: str) -> dict[str, str]:
        declarations: dict[str, str] = {}
        for part in style.split(";"):
            name, _, value = (piece.strip() for piece in part.partition(":"))
            if name == "font" and (font := _FONT.match(value)):  # the shorthand of matplotlib 3.8
                declarations |= {f"font-{key}": setting for key, setting in font.groupdict().items() if setting}
            elif _PROPERTY.fullmatch(name) and _SAFE_VALUE.fullmatch(value):
                declarations[name] = self._colours.get(value.lower(), round_numbers(value))
        return declarations

    def css(self) -> str:
        """Return the rules of all classes."""
        return "\n".join(f".{name}{{{rules}}}" for rules, name in self._classes.items())


def inline_svg(svg: str, *, name: str, title: str, description: str, sheet: Stylesheet) -> str:
    """Convert the text of an SVG file to an element of an HTML page, with ids that start with `name`."""
    tree = ET.fromstring(clean_text(svg))
    ids = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(_svg_references(tree)))}
    root = ET.Element("svg", {"viewBox": round_numbers(tree.attrib["viewBox"]), "role": "img"})
    root.set("aria-labelledby", f"{name}-t {name}-d")
    for tag, text in (("title", title), ("desc", description)):
        ET.SubElement(root, tag, {"id": f"{name}-{tag[0]}"}).text = clean_text(text)
    root.extend(_convert_all((child for child in tree if child.tag in (f"{_SVG}g", f"{_SVG}defs")), ids, sheet))
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")  # text and attributes hold no bare >


def round_numbers(text: str) -> str:
    """Round the decimal numbers in SVG text to two places."""
    return _DECIMAL.sub(lambda number: f"{round(float(number[0]), 2) + 0.0:g}", text)


def compact_path(d: str) -> str:
    """Round an SVG path to tenths and write each point relative to the one before, which takes half the bytes."""
    if circle := _CIRCLE.fullmatch(d):
        x, low, high = (float(number) for number in circle.groups())
        arc = f"a{abs(low - high) / 2} {abs(low - high) / 2} 0 1 0 0"
        return round_numbers(f"M{x} {low}{arc} {high - low}{arc} {low - high}z")
    x = y = 0
    text = last = ""
    for command, numbers in _COMMAND.findall(d):
        tenths = [round(10 * float(number)) for number in numbers.split()]
        steps = tenths if command == "M" else [value - (y if i % 2 else x) for i, value in enumerate(tenths)]
        if command != "L" or any(steps) or last == "M":  # a line of no length after "M" is a dot
            letter = command if command == "M" else command.lower()
            # The letter of a line may be omitted, but a second pair of numbers after "M" would be a line.
            text += f"{' ' if letter == last != 'M' else letter}{' '.join(f'{step / 10:g}' for step in steps)}"
            last = letter
        x, y = tenths[-2:] or (x, y)
    return re.sub(r" (?=-)|(?<![\d.])0(?=\.)", "", text)


def _svg_references(tree: ET.Element) -> list[str]:
    """List the ids that SVG elements refer to, in order; all other ids are dropped."""
    attributes = [attribute for element in tree.iter() for attribute in element.items()]
    links = [[value[1:]] if key in (_HREF, "href") else _REFERENCE.findall(value) for key, value in attributes]
    return [old for link in links for old in link]


def _convert_all(elements: Iterable[ET.Element], ids: Mapping[str, str], sheet: Stylesheet) -> list[ET.Element]:
    """Convert SVG elements; neighbouring paths that look the same become one."""
    converted: list[ET.Element] = []
    for element in (new for old in elements for new in _convert_element(old, ids, sheet)):
        look = {**element.attrib, "d": ""}
        if element.tag == "path" and "id" not in look and converted and {**converted[-1].attrib, "d": ""} == look:
            converted[-1].attrib["d"] += element.attrib["d"]
        else:
            converted.append(element)
    return converted


def _convert_element(element: ET.Element, ids: Mapping[str, str], sheet: Stylesheet) -> list[ET.Element]:
    """Convert an SVG element and its children, without groups that hold no attribute and paths that draw nothing."""
    tag, attributes = element.tag.removeprefix(_SVG), _convert_attributes(element, ids, sheet)
    children = _convert_all(element, ids, sheet)
    if tag == "style" or (tag in ("g", "defs") and not children) or element.get("style") == "fill: none":
        return []
    if tag == "g" and not attributes:
        return children
    converted = ET.Element(tag, attributes)
    converted.text = element.text if tag in ("text", "tspan") else None
    converted.extend(children)
    return [converted]


def _convert_attributes(element: ET.Element, ids: Mapping[str, str], sheet: Stylesheet) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for key, value in element.items():
        if key == "id":
            attributes["id"] = ids.get(value, "")
        elif key in (_HREF, "href"):
            attributes["href"] = f"#{ids[value[1:]]}"
        elif key == "style":
            attributes["class"] = sheet.class_of(value)
        elif key == "d":
            attributes["d"] = compact_path(value)
        elif not _NO_ROTATION.fullmatch(value):
            attributes[key] = _REFERENCE.sub(lambda match: f"url(#{ids[match[1]]})", round_numbers(value))
    return {key: value for key, value in attributes.items() if value}
