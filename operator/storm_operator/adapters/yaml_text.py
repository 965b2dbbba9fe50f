"""YAML text to plain values, strictly: a key that stands twice in a mapping is an error, and errors have their line.

Numbers are what kubectl takes for such: PyYAML alone calls `1e2` a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

T = TypeVar("T")

FLOAT_TAG, INT_TAG = "tag:yaml.org,2002:float", "tag:yaml.org,2002:int"
MOST_DIGITS = 1000
"""Of a whole number. Python itself refuses to read some thousands, in words about Python."""
WITH_EXPONENT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$")
"""As YAML 1.2 has it; in 1.1 there must be a dot and a sign."""


class InvalidYaml(ValueError):
    """A text that is no YAML, or says one thing twice; the message says where and what."""


class SeveralDocuments(InvalidYaml):
    """A text that is YAML, and more than is wanted."""


def yaml_document(text: str) -> Any:
    """The one document in `text`. Raises `InvalidYaml`; `SeveralDocuments` where that is all that is wrong."""
    documents = yaml_documents(text)
    if len(documents) > 1:
        raise SeveralDocuments(f"it has {len(documents)} documents (between lines of ---); one is right here")
    return documents[0] if documents else None


def yaml_documents(text: str) -> list[object]:
    """All documents in `text`. Raises `InvalidYaml`."""
    return _strictly(lambda: list(yaml.load_all(text, _StrictLoader)))


class _StrictLoader(yaml.SafeLoader):
    """Keys are compared as they stand, before `<<` brings in those of another mapping: these may be there again."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        first = dict[tuple[str, str], yaml.Node]()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            before = first.setdefault((key.tag, key.value), key)
            if before is not key:
                problem = f"{key.value!r} stands here again, after line {before.start_mark.line + 1}; say it once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        return node


def _whole_number(loader: _StrictLoader, node: yaml.ScalarNode) -> int:
    if len(node.value) > MOST_DIGITS:
        problem = f"a number of over {MOST_DIGITS} digits stands here; nothing is that large"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return loader.construct_yaml_int(node)


_StrictLoader.add_implicit_resolver(FLOAT_TAG, WITH_EXPONENT, list("-+.0123456789"))
_StrictLoader.add_constructor(INT_TAG, _whole_number)


def _strictly(parse: Callable[[], T]) -> T:
    try:
        return parse()
    except yaml.MarkedYAMLError as error:
        context = f", {error.context}" if error.context else ""
        raise InvalidYaml(f"{_place(error)}{error.problem}{context}") from None
    except yaml.reader.ReaderError as error:
        raise InvalidYaml(f"character {error.position + 1}: {error.reason}") from None
    except RecursionError:
        raise InvalidYaml("nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date that is none
        raise InvalidYaml(" ".join(str(error).split())) from None


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
