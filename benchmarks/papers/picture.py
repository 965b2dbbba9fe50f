"""An experiment's headline as one picture: a panel for each case, a bar for each scheduler, published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bars import Bar, Panel, bars_of
from papers.tables import Document


def picture_of(documents: Sequence[Document]) -> str:
    """Bars are medians of each case's headline."""
    return bars_of([_panel(document) for document in documents])


def _panel(document: Document) -> Panel:
    headline, published = document["headline"], document["published"]
    title = f"{document['case']}: {headline.replace('_', ' ')}"
    return Panel(
        title,
        tuple(
            _bar(name, row.get(headline), published.get(name, {}).get(headline))
            for name, row in document["results"].items()
        ),
    )


def _bar(name: str, spread: Mapping[str, float] | None, published: float | None) -> Bar:
    if spread is None:
        return Bar(name, None, published=published)
    return Bar(name, spread["median"], spread["lowest"], spread["highest"], published)
