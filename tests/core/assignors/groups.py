"""Generated groups for the assignors: small enough to think about, nasty enough to matter."""

from __future__ import annotations

from hypothesis import strategies as st

TOPICS = ("orders", "payments", "clicks", "\ue000x", "\U00010000x", "AaAa", "BBBB")


@st.composite
def scenarios(draw, assignor):
    """A scenario with up to 7 members over up to 7 topics; claims may be stale, twice, or to what does not exist."""
    topics = {name: draw(st.integers(1, 6)) for name in draw(st.sets(st.sampled_from(TOPICS), min_size=1))}
    names = sorted(topics)
    some = st.lists(st.sampled_from(names), unique=True, min_size=1)
    subscription = st.just(names) if draw(st.booleans()) else some
    claim = st.tuples(st.sampled_from(TOPICS), st.integers(-1, 7)).map(list)
    ids = draw(st.lists(st.text("AaBb\ue000\U00010000", min_size=1, max_size=6), unique=True, min_size=1, max_size=7))
    members = [
        {
            "id": member,
            "instance_id": None,
            "topics": draw(subscription),
            "owned": draw(st.lists(claim, max_size=8)),
            "generation": draw(st.integers(-1, 3)),
            "rack": None,
            "user_data": None,
        }
        for member in ids
    ]
    return {"id": "generated", "assignor": assignor, "topics": topics, "members": members}
