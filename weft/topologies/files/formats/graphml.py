"""GraphML as NetworkX writes it: keys, one graph, its nodes and edges with data (http://graphml.graphdrawing.org).

Expat delivers the file event by event: a document type is rejected where it begins, so that no entity is ever declared,
and errors name the line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_CHILDREN = {
    "": ("graphml",),
    "graphml": ("key", "graph", "data", "desc"),
    "key": ("default", "desc"),
    "graph": ("node", "edge", "data", "desc"),
    "node": ("data", "desc"),
    "edge": ("data", "desc"),
}
_MOST_TEXT = 4096
_MOST_KEYS = 256


@dataclass
class _Element:
    tag: str
    attributes: dict[str, str]
    place: str
    data: dict[str, object] = field(default_factory=dict)
    text: str = ""


class _Reader:
    def __init__(self) -> None:
        self.listed = ListedGraph()
        self._keys: dict[str, tuple[str, str]] = {}
        self._defaults: dict[str, dict[str, object]] = {"node": {}, "edge": {}}
        self._open: list[_Element] = [_Element("", {}, "")]
        self._graphs = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def read(self, content: bytes) -> ListedGraph:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise TopologyError(f"line {error.lineno}: is not XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:
            if isinstance(error, TopologyError):
                raise
            raise TopologyError(f"line 1: cannot be decoded: {error}") from None
        if self._graphs != 1:
            raise TopologyError(f"has {self._graphs} graphs", place="the whole", valid="one")
        return self.listed

    @property
    def _place(self) -> str:
        return f"line {self._parser.CurrentLineNumber}"

    def _doctype(self, name: str, *_: object) -> None:
        raise TopologyError(f"DOCTYPE {shown(name)} is refused", place=self._place, valid="GraphML without one")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        above = self._open[-1]
        valid = _CHILDREN.get(above.tag, ())
        if tag not in valid:
            within = f"<{above.tag}>" if above.tag else "the whole"
            raise TopologyError(
                f"<{shown(tag)[1:-1]}> within {within} is not supported",
                place=self._place,
                valid=f"{', '.join(valid) or 'text'}",
            )
        element = _Element(tag, attributes, self._place)
        self._open.append(element)
        if tag == "graph":
            self._graphs += 1
            if (default := attributes.get("edgedefault", "undirected")) != "undirected":
                raise TopologyError(
                    f"edgedefault {shown(default)} is not supported", place=element.place, valid="undirected"
                )
        elif tag == "key":
            self._add_key(element)

    def _text(self, text: str) -> None:
        element = self._open[-1]
        if element.tag in ("data", "default"):
            element.text += text
            if len(element.text) > _MOST_TEXT:
                raise TopologyError(
                    f"<{element.tag}> is too long", place=element.place, valid=f"{_MOST_TEXT} characters"
                )

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        above = self._open[-1]
        if element.tag == "default":
            of, name = self._keys[above.attributes["id"]]
            for each in ("node", "edge") if of == "all" else (of,):
                self._defaults.setdefault(each, {})[name] = element.text.strip()
        elif element.tag == "data" and above.tag in ("node", "edge"):
            above.data[self._named(element, above)] = element.text.strip()
        elif element.tag == "node":
            name = _required(element, "id")
            self.listed.add_node(ListedNode(name, element.place, {**self._defaults["node"], **element.data}))
        elif element.tag == "edge":
            self._add_edge(element)

    def _add_key(self, element: _Element) -> None:
        identity, of = _required(element, "id"), element.attributes.get("for", "all")
        if identity in self._keys or len(self._keys) == _MOST_KEYS:
            raise TopologyError(f"key {shown(identity)} is repeated, or there are too many keys", place=element.place)
        self._keys[identity] = (of, element.attributes.get("attr.name", identity))

    def _named(self, element: _Element, above: _Element) -> str:
        identity = _required(element, "key")
        of, name = self._keys.get(identity, ("", ""))
        if of not in (above.tag, "all"):
            valid = ", ".join(key for key, (each, _) in self._keys.items() if each in (above.tag, "all"))
            raise TopologyError(
                f"no key {shown(identity)} of a {above.tag}",
                place=element.place,
                valid=f"{valid or 'none is listed'}",
            )
        if name in above.data:
            raise TopologyError(f"{shown(name)} is repeated in a {above.tag}", place=element.place, valid="once")
        return name

    def _add_edge(self, element: _Element) -> None:
        if element.attributes.get("directed", "false") != "false":
            raise TopologyError("directed edges are not supported", place=element.place, valid="undirected")
        a, b = _required(element, "source"), _required(element, "target")
        data = {**self._defaults["edge"], **element.data}
        self.listed.add_edge(ListedEdge(a, b, element.attributes.get("id"), element.place, data))


def _required(element: _Element, name: str) -> str:
    if name not in element.attributes:
        raise TopologyError(f"<{element.tag}> has no {name}", place=element.place)
    return element.attributes[name]


def read_graphml(content: bytes) -> ListedGraph:
    """Return the graph. Raises TopologyError with the line."""
    return _Reader().read(content)


KIND = FileFormat(
    "graphml",
    read_graphml,
    lambda content: content.lstrip()[:1] == b"<",
    suffixes=(".graphml", ".xml"),
    is_general=True,
)
