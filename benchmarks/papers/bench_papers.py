"""Each paper's experiment on the simulator, published figures beside ours; the last line is JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from papers.experiment import Case, Figures, figures_of, spreads
from papers.picture import picture_of
from papers.tables import Document, page_of

PAPERS = {
    "liu": "004, Liu et al.: WordCount, HTTP monitor, isolation",
    "aniello": "000, Aniello et al., and 002, Jayalakshmi et al.: chain and Grand Challenge",
    "cardellini": "001, Cardellini et al.: availability and utilisation",
    "ant_colony": "003, Wang, Wang: ant colony",
}
Job = tuple[str, int, int, int]
"""Paper, number of the case, number of the contestant, seed."""


def cases_of(paper: str) -> tuple[Case, ...]:
    cases: tuple[Case, ...] = importlib.import_module(f"papers.{paper}").CASES
    return cases


def play_job(job: Job) -> Figures:
    """In a process of its own: cases hold functions, so they are named and not sent."""
    paper, case_number, contestant_number, seed = job
    case = cases_of(paper)[case_number]
    return figures_of(case, case.contestants[contestant_number], seed)


def jobs_of(papers: list[str], seeds: int) -> list[Job]:
    return [
        (paper, case_number, contestant_number, seed)
        for paper in papers
        for case_number, case in enumerate(cases_of(paper))
        for contestant_number in range(len(case.contestants))
        for seed in range(1, seeds + 1)
    ]


def documents_of(jobs: list[Job], figures: list[Figures]) -> list[Document]:
    """A document for each case, contestants in their order."""
    of_case: dict[tuple[str, int], dict[int, list[Figures]]] = {}
    for (paper, case_number, contestant_number, _), found in zip(jobs, figures, strict=True):
        of_case.setdefault((paper, case_number), {}).setdefault(contestant_number, []).append(found)
    return [_document(PAPERS[paper], cases_of(paper)[number], runs) for (paper, number), runs in of_case.items()]


def _document(paper: str, case: Case, runs: dict[int, list[Figures]]) -> Document:
    results = {
        case.contestants[number].name: {figure: asdict(spread) for figure, spread in spreads(found).items()}
        for number, found in runs.items()
    }
    published = {name: dict(figures) for name, figures in case.published.items()}
    headline = case.headline or next(iter(next(iter(results.values()))), "")
    return {"paper": paper, "case": case.name, "headline": headline, "results": results, "published": published}


def medians_of(documents: list[Document]) -> dict[str, dict[str, dict[str, float]]]:
    """By case, contestant and figure."""
    return {
        document["case"]: {
            name: {figure: round(spread["median"], 3) for figure, spread in row.items()}
            for name, row in document["results"].items()
        }
        for document in documents
    }


def main(
    paper: Annotated[list[str] | None, typer.Option(help=f"Only these, of {', '.join(PAPERS)} (repeatable).")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each contestant in each case.", min=1)] = 3,
    output: Annotated[Path, typer.Option(help="Folder for results.json and tables.md.")] = Path("build/bench-papers"),
    pictures: Annotated[Path, typer.Option(help="Folder for a picture of each paper.")] = Path("build/bench-papers"),
) -> None:
    """Play everything and write the results."""
    began = time.monotonic()
    jobs = jobs_of(paper or list(PAPERS), seeds)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as processes:
        figures = list(processes.map(play_job, jobs))
    documents = documents_of(jobs, figures)
    for folder in (output, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    (output / "results.json").write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")
    (output / "tables.md").write_text(page_of(documents), encoding="utf-8")
    for name in PAPERS:
        own = [document for document in documents if document["paper"] == PAPERS[name]]
        if own:
            (pictures / f"papers-{name}.svg").write_text(picture_of(own), encoding="utf-8")
    sys.stdout.write(page_of(documents))
    summary = {"seconds": round(time.monotonic() - began, 1), "seeds": seeds, "medians": medians_of(documents)}
    sys.stdout.write(json.dumps(summary) + "\n")


if __name__ == "__main__":
    typer.run(main)
