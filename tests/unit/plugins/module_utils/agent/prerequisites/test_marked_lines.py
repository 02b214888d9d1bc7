# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Lines of ours go into a text and out of it again, to the byte."""

from __future__ import annotations

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.marked_lines import (
    MarkedText,
    is_ours,
    made_directory,
    new_file,
    without_marks,
)

TEXTS = ["", "\n", "a\n", "a", "a\nb\nc", "a\r\nb\r\n", "a\x0bb\x85c\u2028d\ne\n", "# a comment\n\n\n", "a\nb\r"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_put_in_comes_out_again(text: str) -> None:
    marked = MarkedText(text)
    marked.insert(len(marked.lines), ["new", "newer"])
    if marked.lines:
        marked.replace(0, 0, ["other"])
        marked.insert(0, ["first"])
    assert marked.result() != text
    assert without_marks(marked.result()) == text


def test_a_text_without_changes_stays_as_it_is() -> None:
    assert MarkedText("a\r\nb").result() == "a\r\nb"
    assert without_marks("a\r\nb # nodeops.drama\n") == "a\r\nb # nodeops.drama\n"


def test_replaced_lines_stay_as_comments() -> None:
    marked = MarkedText("a\n  b\nc\n")
    marked.replace(1, 1, ["  B"])
    assert marked.result() == "a\n# nodeops.dra was:   b\n  B  # nodeops.dra\nc\n"


def test_what_others_changed_meanwhile_is_kept() -> None:
    marked = MarkedText("a\nb")
    marked.insert(2, ["c"])
    assert without_marks(f"{marked.result()}theirs\n".replace("a\nb", "A\nb")) == "A\nb\ntheirs\n"


def test_lines_get_the_line_end_of_the_file() -> None:
    marked = MarkedText("a\r\n")
    marked.insert(1, ["b"])
    assert marked.result() == "a\r\nb  # nodeops.dra\r\n"


def test_a_file_is_ours_until_somebody_adds_to_it() -> None:
    text = new_file(["[a]", "b = 1"])
    assert is_ours(text)
    assert not made_directory(text)
    assert made_directory(new_file(["[a]"], with_directory=True))
    assert not is_ours(f"{text}c = 2\n")
    assert not is_ours("b = 1  # nodeops.dra\n")
