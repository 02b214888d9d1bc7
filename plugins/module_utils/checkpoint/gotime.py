# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Times as Go reads and writes them: RFC 3339 with everything that ``time.Parse`` lets through, and its messages.

Go accepts more than the standard (a comma before the fraction, an hour of one digit, offsets up to 24:60), and years
that Python's ``datetime`` has not, so times are plain integers here: nanoseconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

from .gojson import encode_text

LAYOUT = "2006-01-02T15:04:05Z07:00"
_DIGITS = frozenset("0123456789")
_SHOWN = 200
_BILLION = 1_000_000_000


class GoTimeError(Exception):
    """A text that ``time.Parse`` refuses; the message is Go's."""


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since 1970 of a text as ``time.Parse(time.RFC3339, text)`` reads it. Raises `GoTimeError`."""
    return _Parser(text).parse()


def _days_since_1970(year: int, month: int, day: int) -> int:
    """The proleptic Gregorian calendar, for any year; the count starts in March so that a leap day comes last."""
    if month <= 2:
        year -= 1
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


ZERO = _days_since_1970(1, 1, 1) * 86400 * _BILLION
"""Go's zero time, 0001-01-01T00:00:00Z."""


def format_rfc3339(moment: int) -> str:
    """The UTC text of ``Time.Format(time.RFC3339)``: whole seconds, years of at least four digits."""
    seconds = moment // _BILLION
    days, rest = divmod(seconds, 86400)
    days += 719468
    era = days // 146097
    day_of_era = days - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}Z"


class _Parser:
    """One walk over a text, in the order in which Go's layout names its parts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rest = text

    def parse(self) -> int:
        year = self._year()
        self._literal("-")
        month = self._number("01", 1, 12, "month")
        self._literal("-")
        day = self._number("02", 0, 99, "")
        self._literal("T")
        hour = self._number("15", 0, 23, "hour", fixed=False)
        self._literal(":")
        minute = self._number("04", 0, 59, "minute")
        self._literal(":")
        second = self._number("05", 0, 59, "second")
        fraction = self._fraction()
        offset = self._offset()
        if self.rest:
            raise self._error(f": extra text: {_quote(self.rest)}")
        if not 1 <= day <= _days_in(month, year):
            raise self._error(": day out of range")
        seconds = _days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
        return seconds * _BILLION + fraction

    def _year(self) -> int:
        digits = self.rest[:4]
        if len(digits) < 4 or not _DIGITS.issuperset(digits):
            raise self._bad("2006")
        self.rest = self.rest[4:]
        return int(digits)

    def _literal(self, char: str) -> None:
        if not self.rest.startswith(char):
            raise self._bad(char)
        self.rest = self.rest[1:]

    def _number(self, element: str, low: int, high: int, name: str, fixed: bool = True) -> int:
        """A number of two digits, or of one where Go is lenient."""
        width = 2 if len(self.rest) > 1 and self.rest[1] in _DIGITS else 1
        if self.rest[:1] not in _DIGITS or (fixed and width == 1):
            raise self._bad(element)
        value = int(self.rest[:width])
        self.rest = self.rest[width:]
        if not low <= value <= high:
            raise self._error(f": {name} out of range")
        return value

    def _fraction(self) -> int:
        if self.rest[:1] not in (".", ",") or self.rest[1:2] not in _DIGITS:
            return 0
        end = 1
        while self.rest[end : end + 1] in _DIGITS:
            end += 1
        digits = self.rest[1 : min(end, 10)]
        self.rest = self.rest[end:]
        return int(digits.ljust(9, "0"))

    def _offset(self) -> int:
        """Seconds east of UTC."""
        rest = self.rest
        if rest.startswith("Z"):
            self.rest = rest[1:]
            return 0
        digits = rest[1:3] + rest[4:6]
        if len(rest) < 6 or rest[3] != ":" or not _DIGITS.issuperset(rest[1:3]):
            raise self._bad("Z07:00")
        self.rest = rest[6:]
        if _DIGITS.issuperset(rest[4:6]) and int(rest[4:6]) > 60:
            raise self._error(": time zone offset minute out of range")
        if int(rest[1:3]) > 24:
            raise self._error(": time zone offset hour out of range")
        if rest[0] not in "+-" or not _DIGITS.issuperset(digits):
            self.rest = rest
            raise self._bad("Z07:00")
        seconds = int(rest[1:3]) * 3600 + int(rest[4:6]) * 60
        return -seconds if rest[0] == "-" else seconds

    def _bad(self, element: str) -> GoTimeError:
        return self._error(f" as {_quote(LAYOUT)}: cannot parse {_quote(self.rest)} as {_quote(element)}")

    def _error(self, what: str) -> GoTimeError:
        return GoTimeError(f"parsing time {_quote(self.text)}{what}")


def _days_in(month: int, year: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _quote(text: str) -> str:
    """As Go's time package quotes a text in a message; what is much too long for a message is cut."""
    shown = [_quoted_byte(byte) for byte in encode_text(text[:_SHOWN])]
    return f'"{"".join(shown)}{"..." if len(text) > _SHOWN else ""}"'


def _quoted_byte(byte: int) -> str:
    if byte < 0x20 or byte >= 0x80:
        return f"\\x{byte:02x}"
    char = chr(byte)
    return f"\\{char}" if char in '"\\' else char


def timestamp(moment: int | None) -> str | None:
    """A moment as text for people and playbooks, None for Go's zero time, which stands for "never"."""
    return None if moment is None or moment == ZERO else format_rfc3339(moment)
