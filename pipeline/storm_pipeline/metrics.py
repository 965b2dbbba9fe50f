"""What each pipeline job tells Prometheus: a text file a job, as node exporter's textfile collector reads them.

A job runs and is gone, so nobody can scrape it: it leaves the figures of its last run behind. Every metric is declared
once, in `METRICS`; `write` refuses what is not. Values that are not known are left out: unknown is never zero.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.parser import text_fd_to_metric_families

from storm_pipeline.error_console import error_console

FOLDER_VARIABLE = "STORM_PIPELINE_METRICS_FOLDER"
"""Names the folder of node exporter's textfile collector; jobs tell nothing where it is not set."""

STORM_CLUSTER = "storm_cluster"
"""Label of what is known of one cluster of the history: its name there. `cluster` belongs to Prometheus' targets."""


@dataclass(frozen=True, slots=True)
class PipelineMetric:
    """One gauge. Each has the label `name` (the job's) before `labels`; `job` belongs to Prometheus' own targets."""

    name: str
    labels: tuple[str, ...]
    unit: str
    meaning: str


LAST_SUCCESS = PipelineMetric(
    "storm_pipeline_job_last_success_timestamp_seconds", (), "seconds", "When the job last ended well, since 1970."
)
LAST_RUN = PipelineMetric("storm_pipeline_job_last_run_timestamp_seconds", (), "seconds", "When it last ended at all.")
SUCCEEDED = PipelineMetric("storm_pipeline_job_succeeded", (), "number", "1 if the last run ended well, else 0.")
DURATION = PipelineMetric("storm_pipeline_job_duration_seconds", (), "seconds", "How long the last run took.")
ROWS = PipelineMetric(
    "storm_pipeline_job_rows",
    ("table", "kind"),
    "rows",
    "Rows of the last run. kind: read, written, duplicate, quarantined.",
)
QUARANTINED = PipelineMetric(
    "storm_pipeline_quarantined_rows", ("table", "reason"), "rows", "Rows that the last run set aside, by reason."
)
NEWEST_ROW = PipelineMetric(
    "storm_pipeline_table_newest_row_timestamp_seconds", ("table",), "seconds", "Time of the table's newest row."
)
TABLE_BYTES = PipelineMetric("storm_pipeline_table_bytes", ("table",), "bytes", "Size of the table's live files.")
PROFILE_LEARNED_UNTIL = PipelineMetric(
    "storm_pipeline_profile_timestamp_seconds",
    (STORM_CLUSTER, "topology"),
    "seconds",
    "End of the newest period that the topology's profile was learned from, since 1970.",
)
FORECAST_ERROR = PipelineMetric(
    "storm_pipeline_forecast_error_ratio",
    (STORM_CLUSTER, "topology", "model"),
    "ratio",
    "Mean absolute error of the model's backtest, over the mean load.",
)
METRICS = (
    LAST_SUCCESS,
    LAST_RUN,
    SUCCEEDED,
    DURATION,
    ROWS,
    QUARANTINED,
    NEWEST_ROW,
    TABLE_BYTES,
    PROFILE_LEARNED_UNTIL,
    FORECAST_ERROR,
)
LASTING = (LAST_SUCCESS, NEWEST_ROW, TABLE_BYTES, PROFILE_LEARNED_UNTIL, FORECAST_ERROR)
"""What is so until a run makes it otherwise, which one that failed did not."""

Labelled = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The figures of one run. Times are seconds since 1970; the keys of mappings are label values, in order.

    `rows` by (table, kind); `quarantined` by (table, reason); `newest_row_at` and `table_bytes` by (table,);
    `profiles_learned_until` by (cluster, topology); `forecast_errors` by (cluster, topology, model).
    """

    name: str
    started_at_seconds: float
    ended_at_seconds: float
    succeeded: bool
    rows: Labelled = field(default_factory=dict)
    quarantined: Labelled = field(default_factory=dict)
    newest_row_at: Labelled = field(default_factory=dict)
    table_bytes: Labelled = field(default_factory=dict)
    profiles_learned_until: Labelled = field(default_factory=dict)
    forecast_errors: Labelled = field(default_factory=dict)

    def values(self) -> dict[PipelineMetric, Labelled]:
        """What is said of each metric, but for the time of the last success."""
        return {
            LAST_RUN: {(): self.ended_at_seconds},
            SUCCEEDED: {(): float(self.succeeded)},
            DURATION: {(): self.ended_at_seconds - self.started_at_seconds},
            ROWS: self.rows,
            QUARANTINED: self.quarantined,
            NEWEST_ROW: self.newest_row_at,
            TABLE_BYTES: self.table_bytes,
            PROFILE_LEARNED_UNTIL: self.profiles_learned_until,
            FORECAST_ERROR: self.forecast_errors,
        }


def write(folder: Path, figures: JobFigures) -> Path:
    """Put `figures` into `folder`/storm_pipeline_<name>.prom in one step, in place of those of the run before.

    A run that failed keeps what is `LASTING`, but for what it tells anew. Raises `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"storm_pipeline_{figures.name}.prom"
    values = figures.values()
    if figures.succeeded:
        values[LAST_SUCCESS] = {(): figures.ended_at_seconds}
    else:
        before = lasting_figures(path)
        values |= {metric: {**before.get(metric, {}), **values.get(metric, {})} for metric in LASTING}
    registry = CollectorRegistry()
    for metric, series in values.items():
        if series:
            gauge = Gauge(metric.name, metric.meaning, ("name", *metric.labels), registry=registry)
            for labels, value in sorted(series.items()):
                gauge.labels(figures.name, *labels).set(value)
    write_to_textfile(str(path), registry)
    return path


def is_told() -> bool:
    """Whether the environment names a folder for figures."""
    return bool(os.environ.get(FOLDER_VARIABLE))


@contextmanager
def told(name: str, more: Callable[[], Mapping[str, Labelled]] = dict) -> Iterator[None]:
    """What is done inside is a run of job `name`: told when it ends, well or not, where the environment names a folder.

    `more` gives further figures of `JobFigures` by their names, as they are at the end. That they cannot be written is
    said, and no failure of the run: what it made is there.
    """
    started, succeeded = time.time(), False
    try:
        yield
        succeeded = True
    finally:
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder:
            figures = JobFigures(name, started, time.time(), succeeded, **more())
            try:
                write(Path(folder), figures)
            except OSError as error:
                error_console().print(f"{name}: its figures are not in {folder}: {error}", soft_wrap=True, markup=False)


def lasting_figures(path: Path) -> dict[PipelineMetric, Labelled]:
    """What `path` says of each `LASTING` metric; nothing where nobody knows, as where the file is broken."""
    if not path.is_file():
        return {}
    metrics = {metric.name: metric for metric in LASTING}
    try:
        with path.open(encoding="utf-8") as lines:
            return {
                metrics[family.name]: {
                    tuple(sample.labels[label] for label in metrics[family.name].labels): sample.value
                    for sample in family.samples
                }
                for family in text_fd_to_metric_families(lines)
                if family.name in metrics
            }
    except (ValueError, KeyError):  # cut short, as by a power cut; or of a version with other labels
        return {}
