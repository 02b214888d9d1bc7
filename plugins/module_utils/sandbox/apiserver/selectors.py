# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Label selectors (the whole grammar) and field selectors."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .failures import bad_request

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_TOKEN = re.compile(r"\s*(==|!=|[=<>!(),]|[^\s=!<>(),]+)")


@dataclasses.dataclass(frozen=True)
class Requirement:
    """One condition on one label. ``operator``: in, notin, exists, !, gt, lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: t.Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        if value is None or not re.fullmatch(r"-?\d+", value):
            return False
        return int(value) > int(self.values[0]) if self.operator == "gt" else int(value) < int(self.values[0])


class _Parser:
    """Reader of a label selector's text, one word ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def fail(self, why: str) -> Exception:
        return bad_request(f"unable to parse requirement: {why}")

    def requirements(self) -> t.Iterator[Requirement]:
        if not self.tokens:
            return
        while True:
            yield self.requirement()
            word = self.take()
            if not word:
                return
            if word != ",":
                raise self.fail(f"found '{word}', expected: ',' or 'end of string'")
            if not self.peek():
                raise self.fail("found '', expected: identifier after ','")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.take()
        key = self.take()
        if not key or key in "=!<>(),":
            raise self.fail(f"found '{key}', expected: identifier")
        _check_key(key)
        if negated:
            return Requirement(key, "!")
        operator = self.peek()
        if operator in ("", ","):
            return Requirement(key, "exists")
        self.take()
        if operator in ("=", "==", "!="):
            return Requirement(key, "notin" if operator == "!=" else "in", (self.value(),))
        if operator in ("in", "notin"):
            return Requirement(key, operator, self.values())
        if operator in (">", "<"):
            value = self.value()
            if not re.fullmatch(r"-?\d+", value):
                raise self.fail(
                    f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, "
                    "the value must be an integer"
                )
            return Requirement(key, "gt" if operator == ">" else "lt", (value,))
        raise self.fail(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def value(self) -> str:
        word = self.peek()
        if word in ("", ","):
            return ""
        self.take()
        if word in ("=", "==", "!=", "<", ">", "!", "(", ")"):
            raise self.fail(f"found '{word}', expected: identifier")
        _check_value(word)
        return word

    def values(self) -> tuple[str, ...]:
        if self.take() != "(":
            raise self.fail("found no '(', expected: '('")
        found = []
        while True:
            word = self.take()
            if word == ")":
                found.append("")
                break
            if word == ",":
                found.append("")
                continue
            if not word:
                raise self.fail("found '', expected: ',', or ')'")
            _check_value(word)
            found.append(word)
            word = self.take()
            if word == ")":
                break
            if word != ",":
                raise self.fail(f"found '{word}', expected: ',', or ')'")
        return tuple(found)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if not match:
            raise bad_request(f"unable to parse requirement: {text!r} cannot be read at {at}")
        found.append(match.group(1))
        at = match.end()
    return found


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if (slash and (not prefix or len(prefix) > 253 or not _PREFIX.match(prefix))) or not (
        _LABEL_NAME.match(name) and len(name) <= 63
    ):
        raise bad_request(
            f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
            "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )


def is_label_value(value: str) -> bool:
    return len(value) <= 63 and bool(_LABEL_VALUE.match(value))


def is_qualified_name(key: str) -> bool:
    """Whether the text can be the key of a label or an annotation."""
    prefix, slash, name = key.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and bool(_PREFIX.match(prefix)))
    return good_prefix and len(name) <= 63 and bool(_LABEL_NAME.match(name))


def _check_value(value: str) -> None:
    if not is_label_value(value):
        raise bad_request(
            f'unable to parse requirement: values[0]: Invalid value: "{value}": a valid label must be an empty string '
            "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )


def label_selector(text: str) -> tuple[Requirement, ...]:
    """The conditions of a label selector; all must hold. ApiError 400 when it cannot be read."""
    return tuple(_Parser(text).requirements())


@dataclasses.dataclass(frozen=True)
class FieldTerm:
    """``field=value`` or ``field!=value``."""

    field: str
    value: str
    equal: bool

    def matches(self, fields: t.Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) == self.equal


def _split_terms(text: str) -> list[str]:
    """At commas that are not escaped."""
    return [term for term in re.split(r"(?<!\\),", text) if term]


def field_selector(text: str) -> tuple[FieldTerm, ...]:
    """The terms of a field selector, in order. ApiError 400 when it cannot be read."""
    terms = []
    for term in _split_terms(text):
        match = re.match(r"([^=!]*)(!=|==|=)(.*)\Z", term, re.DOTALL)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        field, operator, value = match.groups()
        terms.append(FieldTerm(field.strip(), re.sub(r"\\([\\,=])", r"\1", value), operator != "!="))
    return tuple(terms)
