"""The text format of OpenMetrics, read back by its grammar (section "ABNF" of the specification)."""

import re

import pytest

from groupledger.cli.openmetrics import Gauge, Labels, exposition

_METRIC, _LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r"[a-zA-Z_][a-zA-Z0-9_]*"
_VALUE = r'(?:[^"\\\n]|\\["\\n])*'
_SAMPLE = re.compile(
    rf'(?P<name>{_METRIC})(?:\{{(?P<labels>{_LABEL}="{_VALUE}"(?:,{_LABEL}="{_VALUE}")*)\}})? (?P<value>-?[0-9.e+-]+)'
)
_META = re.compile(rf"# (?P<kind>TYPE|UNIT|HELP) (?P<name>{_METRIC}) (?P<rest>.*)")
_PAIR = re.compile(rf'(?P<name>{_LABEL})="(?P<value>{_VALUE})"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parsed(text):
    """`{name: {labels: value}}`. Fails for what a strict reader refuses."""
    assert text.endswith("# EOF\n")
    families, types, current = {}, {}, None
    for line in text.removesuffix("# EOF\n").split("\n")[:-1]:
        if line.startswith("#"):
            found = _META.fullmatch(line)
            assert found, line
            if found["kind"] == "TYPE":
                assert found["name"] not in types, "a family is told once"
                current, types[found["name"]] = found["name"], found["rest"]
                families[current] = {}
            assert found["name"] == current, "what is said of a family stands together"
            assert found["kind"] != "UNIT" or current.endswith(f"_{found['rest']}")
            assert not families[current], "what is said of a family stands before its samples"
            continue
        found = _SAMPLE.fullmatch(line)
        assert found, line
        assert found["name"] == current, "samples of a family stand together"
        assert types[current] == "gauge"
        pairs = [(pair["name"], _unescaped(pair["value"])) for pair in _PAIR.finditer(found["labels"] or "")]
        assert len(dict(pairs)) == len(pairs)
        labels = frozenset(pairs)
        assert labels not in families[current], "no sample twice"
        families[current][labels] = float(found["value"])
    return families


def _unescaped(text):
    return re.sub(r'\\[\\"n]', lambda found: _ESCAPES[found[0]], text)


HOSTILE = ['a"b', "a\\", "\\n", "a\nb", '"} 1\n# EOF\n', "\r\x00\u2028", "\N{SNOWMAN}", "", "{a=b}"]


def test_what_is_written_is_read_back():
    values: dict[Labels, float] = {(("cluster", "dev"), ("group", name)): number for number, name in enumerate(HOSTILE)}
    text = exposition([Gauge("a_b", "About it.", values), Gauge("c_seconds", "It.", {(): 1.5}, "seconds")])
    assert parsed(text) == {
        "a_b": {frozenset(labels): value for labels, value in values.items()},
        "c_seconds": {frozenset(): 1.5},
    }


def test_nothing_is_a_text_too():
    assert exposition([]) == "# EOF\n"
    assert parsed(exposition([Gauge("a", "Nothing.", {})])) == {"a": {}}


def test_the_order_of_samples_is_that_of_their_labels():
    one, other = ((("g", "b"),), 1), ((("g", "a"),), 2)
    assert exposition([Gauge("a", "x", dict([one, other]))]) == exposition([Gauge("a", "x", dict([other, one]))])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Gauge("a-b", "x", {}),
        lambda: Gauge("a", "x", {(("1", "y"),): 1}),
        lambda: Gauge("a", "x", {}, "seconds"),
        lambda: Gauge("a", 'an "x"', {}),
        lambda: Gauge("a", "two\nlines", {}),
    ],
)
def test_a_wrong_name_is_a_bug(wrong):
    with pytest.raises(AssertionError):
        wrong()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# EOF",
        "a 1\n# EOF\n",
        '# TYPE a gauge\na{b="c"} 1\na{b="c"} 2\n# EOF\n',
        '# TYPE a gauge\na{b="c\\"} 1\n# EOF\n',
        "# TYPE a gauge\na  1\n# EOF\n",
        "# TYPE a gauge\na 1\n\n# EOF\n",
        "# TYPE a gauge\na 1\n# HELP a x\n# EOF\n",
        "# TYPE a gauge\n# TYPE b gauge\na 1\n# EOF\n",
    ],
)
def test_the_reader_of_these_tests_refuses_what_the_specification_does(text):
    with pytest.raises(AssertionError):
        parsed(text)
