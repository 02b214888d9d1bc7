# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The TOML reader for old Pythons reads what the standard library's reads, and refuses what it does not know."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.toml_text import (
    NoTomlError,
    read_plain_toml,
    read_toml,
)

from . import configurations

TRICKY = {
    "empty": "",
    "comments": "# one\n  # two\na = 1 # three\n",
    "strings": "a = \"x # y\\t\\\"\\u00e9\\U0001F600\"\nb = 'c:\\d'\nc = ''\n",
    "long strings": 'a = """\none\n  two\\\n   three"""\nb = \'\'\'x\'y\'\'\'\nc = """"quoted""""\n',
    "numbers": "a = -5\nb = 1_000\nc = 0x1F\nd = 0o17\ne = 0b101\nf = 0\n",
    "floats": "a = 0.02\nb = -1e3\nc = 6.626e-34\nd = 1_0.5\ne = inf\n",
    "arrays": 'a = []\nb = [1, 2,]\nc = [ # one\n  "x", # two\n  [true],\n]\n',
    "inline tables": "a = {}\nb = { c = 1, d.e = [ { f = 2 } ] }\n",
    "dotted keys": "a.b.c = 1\na.b.d = 2\n'x.y'.z = 3\n",
    "tables": "[a]\nx = 1\n[a.b]\ny = 2\n[c.d]\n[c]\nz = 3\n",
    "lists of tables": "[[a]]\nx = 1\n[[a]]\n[a.b]\ny = 2\n[[a.c]]\n",
    "blanks and line ends": "[ a . b ]\r\n\tx\t=\t1\r\n",
}
WRONG = {
    "no value": "a = \n",
    "no equals sign": "a\n",
    "no key": "= 1\n",
    "word": "a = yes\n",
    "open string": 'a = "x\n',
    "open long string": 'a = """x\n',
    "open array": "a = [1\n",
    "open table": "[a\n",
    "twice": "a = 1\na = 2\n",
    "table twice": "[a]\n[a]\n",
    "table over value": "a = 1\n[a]\n",
    "list over table": "[a]\n[[a]]\n",
    "into an inline table": "a = {}\na.b = 1\n",
    "header into an inline table": "a = {}\n[a.b]\n",
    "list over array": "a = []\n[[a]]\n",
    "behind a value": "a = 1 2\n",
    "escape": 'a = "\\q"\n',
    "surrogate number": 'a = "\\U00110000"\n',
    "leading zero": "a = 007\n",
    "point without digits": "a = 1.\n",
    "deep": "a = " + "[" * 2000 + "]" * 2000,
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs the standard library's reader")
@pytest.mark.parametrize("text", [*configurations.ALL.values(), *TRICKY.values()], ids=[*configurations.ALL, *TRICKY])
def test_both_readers_read_the_same(text: str) -> None:
    import tomllib

    assert read_plain_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_what_is_no_toml_is_refused_by_both(text: str) -> None:
    for read in (read_plain_toml, read_toml):
        with pytest.raises(NoTomlError, match="is not valid TOML"):
            read(text)


def test_the_line_of_an_error_is_told() -> None:
    with pytest.raises(NoTomlError, match=r"line 3"):
        read_plain_toml("a = 1\n\nb = \n")


def test_dates_are_kept_as_text() -> None:
    text = "a = 1979-05-27T07:32:00Z\nb = 1979-05-27\nc = 07:32:00\n"
    assert read_plain_toml(text) == {"a": "1979-05-27T07:32:00Z", "b": "1979-05-27", "c": "07:32:00"}
