"""Search the built site as the theme does in a browser: lunr over search_index.json, scored and grouped by page.

After Material for MkDocs 9 (`integrations/search`): no stemmer and no trimmer, no normalisation by length, every word
of a query is a prefix, and a page or section counts more the more words it matches. A browser test compares both.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path

from lunr.builder import Builder
from lunr.stop_word_filter import stop_word_filter

_TAG = re.compile(r"<[^>]*>")
QUERIES = {
    "what is a generation": "concepts/vocabulary.md",
    "glossary": "concepts/vocabulary.md",
    "quickstart": "start/quickstart.md",
    "install": "start/install.md",
    "python api": "reference/python-api.md",
    "API": "reference/python-api.md",
    "applyInPandas": "start/tutorial-dataframes.md",
    "msk": "operate/managed-kafka.md",
    "confluent cloud": "operate/managed-kafka.md",
    "burrow": "concepts/compared.md",
    "duckdb": "guides/use/tables-in-duckdb-polars-pandas.md",
    "what is now": "concepts/now.md",
    "what the log cannot tell": "concepts/what-the-log-cannot-tell.md",
    "what counts as a move": "concepts/moves.md",
    "who owned": "guides/investigate/who-owned-a-partition.md",
    "unowned": "guides/investigate/unowned-partitions.md",
    "orphaned partitions": "guides/investigate/unowned-partitions.md",
    "stuck partition": "guides/investigate/unowned-partitions.md",
    "lag": "guides/investigate/unowned-partitions.md",
    "duplicate processing": "guides/investigate/two-owners-duplicates-zombies.md",
    "zombie": "guides/investigate/two-owners-duplicates-zombies.md",
    "why rebalance": "guides/investigate/why-a-group-rebalanced.md",
    "rebalance storm": "guides/investigate/rebalance-storms.md",
    "flapping": "guides/investigate/flapping-members.md",
    "skew": "guides/investigate/skew.md",
    "hot consumer": "guides/investigate/skew.md",
    "static membership": "guides/investigate/static-members.md",
    "simulate add consumers": "guides/decide/what-if.md",
    "what-if": "guides/decide/what-if.md",
    "cooperative-sticky": "guides/decide/move-to-cooperative-sticky.md",
    "kip-848": "guides/decide/kip-848-readiness.md",
    "write an assignor": "guides/decide/write-an-assignor.md",
    "rolling restart": "guides/decide/rehearse-a-listener.md",
    "sql": "guides/use/sql.md",
    "jupyter": "guides/use/notebook.md",
    "alert": "guides/use/alerts-prometheus-cron.md",
    "grafana": "guides/use/alerts-prometheus-cron.md",
    "prometheus": "guides/use/alerts-prometheus-cron.md",
    "cron": "operate/schedule.md",
    "airflow": "operate/schedule.md",
    "docker": "operate/schedule.md",
    "kubernetes": "operate/schedule.md",
    "databricks": "operate/run-on-spark.md",
    "quarantine": "reference/tables/quarantine.md",
    "exit codes": "reference/codes.md",
}
"""What a user types, and the page that should come first."""


class SiteSearch:
    """The index of a site; `pages(query)` are its pages, best first."""

    def __init__(self, site: Path):
        read = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
        self._separator = re.compile(read["config"]["separator"])
        self._locations = {each["location"] for each in read["docs"]}
        assert read["config"]["pipeline"] == []
        builder = Builder()
        builder.ref("location")
        builder.b(0)
        for name, spec in read["config"]["fields"].items():
            builder.field(name, boost=spec["boost"], extractor=lambda doc, name=name: self._tokens(doc.get(name, "")))
        for each in read["docs"]:
            builder.add(each, {"boost": each.get("boost", 1)})
        self._index = builder.build()

    def pages(self, query: str) -> list[str]:
        """Return the addresses of the pages found, best first."""
        words = list(dict.fromkeys(chain.from_iterable(self._words(word) for word in query.lower().split())))
        found = sorted(self._scored(words), key=lambda each: -each[0])
        return list(dict.fromkeys(location.partition("#")[0] for _, location in found))

    def _scored(self, words: list[str]):
        for match in self._index.search(" ".join(f"{word}*" for word in words)):
            terms = match["match_data"].metadata
            hit = {word for word in words if any(term.startswith(word) for term in terms)}
            counted = [word for word in words if word in hit or stop_word_filter(word)]
            location = match["ref"]
            boost = ("#" not in location) + len(hit) / len(counted)
            yield match["score"] * (1 + boost**2), location

    def _words(self, text: str) -> list[str]:
        return [each for each in self._separator.split(text) if each]

    def _tokens(self, text: str | list[str]) -> list[str]:
        texts = [text] if isinstance(text, str) else text
        return [word.lower() for each in texts for part in _TAG.split(each) for word in self._words(part)]
