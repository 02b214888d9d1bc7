# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The small part of CEL that device selectors use, for the allocator that plays the scheduler.

Known: ``&& || ! == != < <= > >= in``, parentheses, texts, whole numbers, true, false, lists, fields, ``[...]``,
``has(...)``, ``quantity("1Gi")`` with ``compareTo``, ``isGreaterThan`` and ``isLessThan``, and of texts
``startsWith endsWith contains matches``. Nothing else: no macros, arithmetic, ternary, or semver.
"""

from __future__ import annotations

import decimal
import functools
import re
import typing as t

from ...checkpoint.errors import DraError

Environment = t.Mapping[str, t.Any]
Evaluate = t.Callable[[Environment], t.Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?\d+)|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<sign>&&|\|\||==|!=|<=|>=|[!<>()\[\].,]))"""
)
_SUFFIXES: dict[str, int | decimal.Decimal] = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
    "m": decimal.Decimal("0.001"), "u": decimal.Decimal("0.000001"), "n": decimal.Decimal("0.000000001"),
}  # fmt: skip


class CelError(DraError):
    """An expression that this evaluator does not understand, or that fails for a device."""


def quantity(text: t.Any) -> decimal.Decimal:
    """A Kubernetes quantity as a number. CelError when it is none."""
    match = re.fullmatch(r"([+-]?\d+(?:\.\d*)?)([A-Za-z]*)", str(text))
    if not match or match.group(2) not in _SUFFIXES:
        raise CelError(f"The quantity {text!r} cannot be read.")
    return decimal.Decimal(match.group(1)) * _SUFFIXES[match.group(2)]


@functools.lru_cache(maxsize=1024)
def compiled(expression: str) -> Evaluate:
    """A function for an expression. CelError when it is beyond what is known here."""
    return _Compiler(expression).whole()


def selects(expression: str, device: t.Mapping[str, t.Any]) -> bool:
    """Whether the expression holds for ``{"driver": ..., "attributes": ..., "capacity": ...}``.

    A missing attribute is an error in CEL; here, as for the scheduler with one device, it just does not match.
    """
    try:
        return compiled(expression)({"device": device}) is True
    except (KeyError, TypeError, AttributeError):
        return False


class _Compiler:
    """Recursive descent over the tokens; each method gives a function of the environment."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while expression[at:].strip():
            match = _TOKEN.match(expression, at)
            if match is None:
                raise self.fail(f"{expression[at:].strip()[:20]!r} is not understood")
            self.tokens.append((t.cast(str, match.lastgroup), match.group(match.lastgroup or 0)))
            at = match.end()
        self.at = 0

    def fail(self, why: str) -> CelError:
        return CelError(
            f"The CEL expression {self.expression!r} cannot be evaluated: {why}.",
            "The sandbox knows a small part of CEL only.",
            expression=self.expression,
        )

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (wanted and self.peek() != wanted):
            raise self.fail(f"expected {wanted or 'a value'} but found {self.peek() or 'the end'!r}")
        self.at += 1
        return self.tokens[self.at - 1]

    def whole(self) -> Evaluate:
        result = self.either()
        if self.peek():
            raise self.fail(f"{self.peek()!r} is too much")
        return result

    def either(self) -> Evaluate:
        left = self.both()
        while self.peek() == "||":
            self.take()
            left = self._or(left, self.both())
        return left

    @staticmethod
    def _or(left: Evaluate, right: Evaluate) -> Evaluate:
        return lambda env: left(env) is True or right(env) is True

    def both(self) -> Evaluate:
        left = self.relation()
        while self.peek() == "&&":
            self.take()
            left = self._and(left, self.relation())
        return left

    @staticmethod
    def _and(left: Evaluate, right: Evaluate) -> Evaluate:
        return lambda env: left(env) is True and right(env) is True

    def relation(self) -> Evaluate:
        left = self.unary()
        sign = self.peek()
        compare = _COMPARE.get(sign)
        if compare is None:
            return left
        self.take()
        right = self.unary()
        return lambda env: compare(left(env), right(env))

    def unary(self) -> Evaluate:
        if self.peek() == "!":
            self.take()
            inner = self.unary()
            return lambda env: inner(env) is not True
        return self.member()

    def member(self) -> Evaluate:
        value = self.primary()
        while self.peek() in (".", "["):
            if self.take()[1] == "[":
                index = self.either()
                self.take("]")
                value = self._indexed(value, index)
                continue
            name = self.take()[1]
            value = self._called(value, name) if self.peek() == "(" else self._field(value, name)
        return value

    @staticmethod
    def _indexed(value: Evaluate, index: Evaluate) -> Evaluate:
        return lambda env: value(env)[index(env)]

    @staticmethod
    def _field(value: Evaluate, name: str) -> Evaluate:
        return lambda env: value(env)[name]

    def _called(self, value: Evaluate, name: str) -> Evaluate:
        method = _METHODS.get(name)
        if method is None:
            raise self.fail(f"the method {name} is not known")
        arguments = self.arguments()
        return lambda env: method(value(env), *(argument(env) for argument in arguments))

    def arguments(self) -> list[Evaluate]:
        self.take("(")
        found = []
        while self.peek() != ")":
            found.append(self.either())
            if self.peek() == ",":
                self.take()
        self.take(")")
        return found

    def primary(self) -> Evaluate:
        kind, text = self.take()
        if text == "(":
            inner = self.either()
            self.take(")")
            return inner
        if text == "[":
            return self.listed()
        if kind == "text":
            plain = re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda _env: plain
        if kind == "number":
            number = int(text)
            return lambda _env: number
        if kind != "name":
            raise self.fail(f"{text!r} is not understood")
        return self.named(text)

    def listed(self) -> Evaluate:
        found = []
        while self.peek() != "]":
            found.append(self.either())
            if self.peek() == ",":
                self.take()
        self.take("]")
        return lambda env: [item(env) for item in found]

    def named(self, name: str) -> Evaluate:
        if name in ("true", "false"):
            return lambda _env: name == "true"
        if name == "device":
            return lambda env: env["device"]
        if name not in ("has", "quantity") or self.peek() != "(":
            raise self.fail(f"the name {name} is not known")
        arguments = self.arguments()
        if len(arguments) != 1:
            raise self.fail(f"{name} takes one argument")
        inner = arguments[0]
        if name == "quantity":
            return lambda env: quantity(inner(env))
        return lambda env: _has(inner, env)


def _has(inner: Evaluate, env: Environment) -> bool:
    try:
        inner(env)
    except (KeyError, TypeError):
        return False
    return True


def _equal(left: t.Any, right: t.Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


_COMPARE: dict[str, t.Callable[[t.Any, t.Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
    "in": lambda left, right: left in right,
}
_METHODS: dict[str, t.Callable[..., t.Any]] = {
    "compareTo": lambda left, right: (left > right) - (left < right),
    "isGreaterThan": lambda left, right: left > right,
    "isLessThan": lambda left, right: left < right,
    "startsWith": lambda left, right: left.startswith(right),
    "endsWith": lambda left, right: left.endswith(right),
    "contains": lambda left, right: right in left,
    "matches": lambda left, right: re.search(right, left) is not None,
}
