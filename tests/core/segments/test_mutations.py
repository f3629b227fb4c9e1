"""Cuts, flips and zeros at any byte of any segment: nothing else is lost, nothing invented, everything counted."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.log.segments import LEAST_ZEROS
from tests.examples import examples
from tests.segments import real
from tests.segments.hand import ABORT, COMMIT, TRANSACTIONAL, batch, commit, group, marker, record
from tests.segments.reading import name, read, windows_of


@dataclass(frozen=True)
class Place:
    """A batch: its file, where it begins and ends, its offsets, and the producer whose transaction it belongs to."""

    file: str
    start: int
    end: int
    offsets: range
    producer: int | None


@st.composite
def logs(draw):
    """Files of a log partition without gaps, and the place of each batch."""
    files, places, offset = {}, [], 0
    for _ in range(draw(st.integers(1, 3))):
        file, data = name(offset), b""
        for _ in range(draw(st.integers(1, 5))):
            made, count, producer = draw(batches(offset))
            places.append(Place(file, len(data), len(data) + len(made), range(offset, offset + count), producer))
            data += made
            offset += count
        files[file] = data
    return files, places


@st.composite
def batches(draw, base):
    """Bytes of a batch, how many offsets it takes, its transaction."""
    kind = draw(st.sampled_from(["plain", "plain", "data", "commit", "abort"]))
    producer = draw(st.integers(1, 2))
    if kind in ("commit", "abort"):
        return marker(base, COMMIT if kind == "commit" else ABORT, producer), 1, producer
    keys = [group, commit] if kind == "plain" else [commit]
    count = draw(st.integers(1, 3))
    value = draw(st.sampled_from([None, b"", b"\0" * 12, b"v" * 30]))
    rows = [record(at, draw(st.sampled_from(keys))(f"g{at}"), value, time=base) for at in range(count)]
    if kind == "plain":
        return batch(base, rows), count, None
    return batch(base, rows, attributes=TRANSACTIONAL, producer=producer), count, producer


def by_damage(places, file, first, last):
    """Batches with a byte from `first` to `last` of the file; offsets of the others that are of no transaction."""
    hit = [each for each in places if each.file == file and each.start <= last and each.end > first]
    others = (each for each in places if each not in hit and each.producer is None)
    return hit, {offset for each in others for offset in each.offsets}


def of(records, offsets):
    return [row for row in records if row[0] in offsets]


@settings(max_examples=examples(100), deadline=None)
@given(logs(), st.data(), st.sampled_from([61, 200, 4 << 20]))
def test_a_flipped_bit_costs_no_other_batch(log, data, window):
    files, places = log
    file = data.draw(st.sampled_from(sorted(files)))
    at = data.draw(st.integers(0, len(files[file]) - 1))
    flipped = bytearray(files[file])
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    with windows_of(window):
        before, after = read(files), read(files | {file: bytes(flipped)})
    assert before.codes == []
    (place,), wanted = by_damage(places, file, at, at)
    assert of(after.records, wanted) == of(before.records, wanted)
    harmless = place.start + 12 <= at < place.start + 16
    unseen = place.start <= at < place.start + 8 and place == places[-1] and after.codes == []
    assert len(after.codes) == (0 if harmless or unseen else 1)
    assert unseen or set(after.records) <= set(before.records)
    assert after.entries == before.entries - (0 if after.codes == [] else len(place.offsets) - 1)


@settings(max_examples=examples(100), deadline=None)
@given(logs(), st.data(), st.sampled_from([61, 200, 4 << 20]), st.sampled_from([0, 700]))
def test_a_cut_is_a_torn_tail_in_the_last_segment_and_damage_before(log, data, window, zeros):
    files, places = log
    file = data.draw(st.sampled_from(sorted(files)))
    cut = data.draw(st.integers(0, len(files[file])))
    with windows_of(window):
        before, after = read(files), read(files | {file: files[file][:cut] + b"\0" * zeros})
    _, wanted = by_damage(places, file, cut, len(files[file]))
    assert of(after.records, wanted) == of(before.records, wanted)
    assert set(after.records) <= set(before.records)
    torn = next((each for each in places if each.file == file and each.start < cut < each.end), None)
    if file != max(files):
        assert "torn tail" not in after.left_out
        assert len(after.codes) == (1 if torn or zeros else 0)
    else:
        written = torn is not None and files[file][torn.start : cut].strip(b"\0") != b""
        almost_whole = written and zeros and torn.end - cut < 2 * LEAST_ZEROS
        assert almost_whole or (after.codes, after.left_out.get("torn tail", 0)) == ([], int(written))


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(real.CODECS), st.data())
def test_any_damage_to_real_segments_is_survived_and_nothing_is_invented(codec, data):
    files = {file: bytearray(content.rstrip(b"\0")) for file, content in real.files(codec).items()}
    known = {row[2:] for row in real.consumed(codec)}
    for _ in range(data.draw(st.integers(1, 6))):
        damaged = files[data.draw(st.sampled_from(sorted(files)))]
        at = data.draw(st.integers(0, max(0, len(damaged) - 1)))
        what = data.draw(st.sampled_from(["flip", "cut", "zeros", "out", "noise"]))
        size = data.draw(st.integers(1, 300))
        if what == "flip" and damaged:
            damaged[at] ^= 1 << data.draw(st.integers(0, 7))
        elif what == "cut":
            del damaged[at:]
        elif what == "out":
            del damaged[at : at + size]
        elif what == "zeros":
            damaged[at : at + size] = bytes(size)
        else:
            damaged[at:at] = data.draw(st.binary(min_size=1, max_size=80))
    found = read({file: bytes(content) for file, content in files.items()})
    assert {row[2:] for row in found.records} <= known
