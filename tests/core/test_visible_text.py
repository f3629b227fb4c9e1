"""What others wrote: shown to a person as it is spelled, to a program as it is."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupledger.core.text import json_text, visible
from tests.hostile_ids import HOSTILE, RAW

ANY = st.text(st.characters(codec=None), max_size=20)


@pytest.mark.parametrize("character", [*HOSTILE, *map(chr, range(32)), *map(chr, range(0x7F, 0xA1))])
def test_what_steers_a_terminal_is_spelled_out(character):
    assert visible(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize("text", ["orders-7", "größe", "注文", "\U0001f600", "a b", "back\\slash", "[bold]"])
def test_what_has_a_shape_stays(text):
    assert visible(text) == text


@given(ANY)
def test_no_control_gets_through_and_json_gives_the_very_text_back(text):
    assert not RAW.search(visible(text))
    written = json_text({text: [text]})
    assert not RAW.search(written)
    assert json.loads(written) == json.loads(json.dumps({text: [text]}))
    categories = {unicodedata.category(each) for each in visible(text) + written}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
