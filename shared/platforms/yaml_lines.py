"""The lines of a YAML file on which its fields are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml


class YamlLines:
    def __init__(self, text: str) -> None:
        self._root = yaml.compose(text, Loader=yaml.SafeLoader)

    def line_of(self, path: Sequence[int | str]) -> int:
        """The line of that field, or of the innermost field around it that the file has."""
        node, line = self._root, 1
        for part in path:
            child = _inside(node, part)
            if child is None:
                break
            line, node = child
        return line

    def repeated_keys(self) -> Iterator[tuple[int, str, int]]:
        """Keys that a mapping has twice: the second line, the key, the first line."""
        seen: set[int] = set()
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            if id(node) in seen or node is None:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                waiting += node.value
            elif isinstance(node, yaml.MappingNode):
                first: dict[str, int] = {}
                for key, value in node.value:
                    waiting.append(value)
                    line = key.start_mark.line + 1
                    if isinstance(key.value, str) and first.setdefault(key.value, line) != line:
                        yield line, key.value, first[key.value]


def _inside(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    """The line of a key or of an item, and its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line + 1, value
    if (
        isinstance(node, yaml.SequenceNode)
        and isinstance(part, int)
        and 0 <= part < len(node.value)
    ):
        item = node.value[part]
        return item.start_mark.line + 1, item
    return None
