"""Answers on a terminal: broken between words, columns that share its width, and nothing wider than it."""

import contextlib
import io
import re

import pytest

from groupledger.answers.answer_columns import Column
from groupledger.cli import main
from groupledger.cli.output import Output, cell_lines, fitting, in_lines, say, shared_widths, table_widths
from groupledger.core.rebalance.findings import Severity
from groupledger.notebook.replies import HtmlPage
from tests.report.html.group_sizes import cooperative, ledger, long_name

WORDS = ("who t-4", "who --unowned-since 1s", "timeline payments", "timeline --partition t-4", "explain payments",
         "explain payments --generation 3", "audit", "show", "show --group payments", "show --group payments --last",
         "show --findings", "show --coverage", "show --quarantine", "report storms", "report skew", "report joins",
         "report static", "report stickiness", "report rack", "report migration", "readiness",
         "diff payments --from 1 --to 3")  # fmt: skip
SIZES = {3: (12, 8, (4, 5)), 50: (400, 6, (7, 8, 9)), 1_000: (10_000, 2, tuple(range(100, 600)))}
"""Members -> partitions, rebalances, and partitions that nobody has in the end."""


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 20, ["short"]),
        ("one two three", 8, ["one two", "three"]),
        ("- " + "word " * 12, 30, ["- word word word word word", "  word word word word word", "  word word"]),
        ("[ ] Bounce 1: " + "word " * 6, 30, ["[ ] Bounce 1: word word word", "    word word word"]),
        ("causes:     " + "word " * 8, 40, ["causes:     word word word word word", "            word word word"]),
        ("an-id-that-is-longer-than-the-line stays", 12, ["an-id-that-is-longer-than-the-line", "stays"]),
    ],
    ids=["fits", "words", "point", "box", "label", "id"],
)
def test_prose_is_broken_between_words(text, width, expected):
    assert in_lines(text, width) == expected
    assert "".join(" ".join(in_lines(text, width)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("t:0-2", 8, ["t:0-2"]),
        ("t:1000,2000,3000", 8, ["t:1000,", "2000,", "3000"]),
        ("java-cooperative-sticky", 18, ["java-cooperative-", "sticky"]),
        ("audit:0-2 orders:0-3", 12, ["audit:0-2", "orders:0-3"]),
        ("list range, cooperative-sticky", 25, ["list range,", "cooperative-sticky"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("", 3, [""]),
    ],
)
def test_a_cell_is_broken_where_a_list_or_a_name_has_a_joint(text, width, expected):
    assert cell_lines(text, width) == expected


@pytest.mark.parametrize(
    ("widths", "least", "room", "expected"),
    [
        ([5, 5], [None, None], 12, [5, 5]),
        ([5, 6], [None, None], 12, None),
        ([5, 40], [None, 10], 30, [5, 23]),
        ([20, 40], [10, 10], 42, [20, 20]),
        ([11, 40], [10, 10], 42, [11, 29]),
        ([20, 40], [10, 10], 20, None),
    ],
)
def test_columns_share_the_room_that_is_left_the_narrow_first(widths, least, room, expected):
    assert shared_widths(widths, least, room) == expected


def test_a_column_that_was_dropped_comes_back_where_there_is_room_after_all():
    columns = [Column("group"), Column("state", 1), Column("assignor", 2), Column("gaps", 3)]
    widths = [10, 6, 30, 4]
    assert fitting(columns, widths, 56) == [0, 1, 2, 3]
    assert fitting(columns, widths, 55) == [0, 1, 2]
    assert fitting(columns, widths, 40) == [0, 1, 3]
    assert fitting(columns, widths, 23) == [0, 1]


def test_a_message_on_a_terminal_is_broken_between_words_and_elsewhere_is_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    for stream, expected in (
        (Terminal(), ["groupledger: one two", "three four"]),
        (io.StringIO(), ["groupledger: one two three four"]),
    ):
        with contextlib.redirect_stderr(stream):
            say("groupledger: one two three four")
        assert stream.getvalue().splitlines() == expected


def test_numbers_stay_in_one_piece_and_words_are_broken_the_more_the_narrower_it_is():
    widths, numbers = [30, 6, 30], [False, True, False]
    assert [table_widths(widths, numbers, room) for room in (70, 40, 27, 20)] == [
        [30, 6, 30],
        [15, 6, 15],
        [8, 6, 9],
        None,
    ]


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


def test_what_is_grave_is_in_colour_on_a_terminal_and_in_a_cell_and_a_name_is_not(monkeypatch):
    rows: list[list[object]] = [[Severity.ERROR], [Severity.WARNING], [Severity.INFO], ["error"]]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    page = HtmlPage()
    with contextlib.redirect_stdout(Terminal()) as stream:
        for output in (Output(as_json=False), page):
            output.title("error: UNOWNED", Severity.ERROR)
            output.table(["severity"], rows)
    seen = re.findall(r"\x1b\[([0-9;]+)m(\w+)", stream.getvalue())
    assert seen == [("1;31", "error"), ("1", "severity"), ("31", "error"), ("33", "warning")]
    assert re.findall(r";color: (#\w+); background: #\w+;\">(\w+)", page.text) == [
        ("#8b0000", "error"),
        ("#8b0000", "error"),
        ("#6b4700", "warning"),
    ]


def seen(monkeypatch, width, place, words):
    """The lines of a command on a terminal of that width, without its colours."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    with contextlib.redirect_stdout(Terminal()) as stream, contextlib.suppress(SystemExit):
        main([*words.split(), "--ledger", place])
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledgers")
    return {
        members: ledger(folder / str(members), cooperative(members, some, often, forgotten=lost), partitions=some)
        for members, (some, often, lost) in SIZES.items()
    }


@pytest.mark.parametrize(
    ("members", "width"),
    [(3, 80), (50, 80), *(pytest.param(1_000, width, marks=pytest.mark.long) for width in (80, 200))],
)
def test_no_line_is_wider_than_the_terminal_and_no_number_is_broken(places, monkeypatch, members, width):
    for words in WORDS:
        lines = seen(monkeypatch, width, places[members], words)
        assert [line for line in lines if len(line.rstrip()) > width and " " in line.strip()] == [], words
        assert lines, words
        assert len(lines) < 320, words
        heads = [line for line in lines if re.match(r" *(?:grou|clu|ste|arn|snap)(?: |$)", line)]
        assert heads == [], words


def test_of_many_members_those_that_gain_or_lose_come_first_and_the_rest_is_counted(places, monkeypatch):
    lines = seen(monkeypatch, 80, places[1_000], "show --group payments --last --limit 2")
    assert "... and 998 more members (--limit)" in lines
    first = next(at for at, line in enumerate(lines) if re.match("member +held", line))
    assert lines[first + 1].split()[0] == long_name(1_002).split("-0000-")[0].removeprefix("app-")


def test_partitions_that_nobody_had_from_one_moment_on_are_one_line(places, monkeypatch):
    text = " ".join(seen(monkeypatch, 80, places[1_000], "explain payments --generation 2"))
    assert re.search(r"to the end +500 +t:100-599", text)
    lines = seen(monkeypatch, 80, places[1_000], "who --unowned-since --limit 1000")
    assert [line.split() for line in lines if line.startswith("partitions")] == [["partitions", "t:100-599"]]
    assert [line.split() for line in lines if line.startswith("last owner")] == [["last", "owner", "500", "members"]]


def test_a_few_partitions_keep_a_line_for_each_last_owner(places, monkeypatch):
    lines = seen(monkeypatch, 200, places[3], "who --unowned-since")
    assert sum("t:4" in line or "t:5" in line for line in lines) == 2
    assert not any("members" in line for line in lines)


def test_member_ids_of_storms_and_joins_are_as_short_as_they_can_be_told_apart(places, monkeypatch):
    for words in ("report storms", "report joins"):
        lines = seen(monkeypatch, 80, places[50], words)
        assert not any("-0000-4000-" in line for line in lines), words
