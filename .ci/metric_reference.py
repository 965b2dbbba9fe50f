"""Writes docs/reference/metrics.md from the metrics contract and the pipeline's; `--check` only compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from reference_page import keep

from storm_operator.metric_contract import AGENT_METRICS, Kind, Metric
from storm_operator.metric_contract.decisions import DECISION_METRICS
from storm_operator.metric_contract.load import SUPERVISOR_METRICS, TOPOLOGY_METRICS
from storm_operator.metric_contract.loop import LOOP_METRICS, PROCESS_METRICS
from storm_pipeline.metrics import FOLDER_VARIABLE, PipelineMetric
from storm_pipeline.metrics import METRICS as PIPELINE_METRICS

PAGE = Path(__file__).parent.parent / "docs/reference/metrics.md"
COMMAND = ".venv/bin/python .ci/metric_reference.py"
SECTIONS: tuple[tuple[str, Sequence[Metric]], ...] = (
    ("Agent", AGENT_METRICS),
    ("Operator: itself", LOOP_METRICS),
    ("Operator: topologies and components", TOPOLOGY_METRICS),
    ("Operator: supervisors", SUPERVISOR_METRICS),
    ("Operator: plans, holds, CPU of pods", DECISION_METRICS),
    ("Operator: its process", PROCESS_METRICS),
)
HEAD = f"""# Metrics

<!-- Made from operator/storm_operator/metric_contract and pipeline/storm_pipeline/metrics.py by
`{COMMAND}`: edit those, not this page. -->

Everything that agents and the operator export, in Prometheus' text format: agents at `:9464/metrics`, the operator at
`:8080/metrics` in Kubernetes and at `--metrics-port` standalone. Units are base units. **A series whose value is not
known is absent**: unknown is never zero. Series of what is gone (a topology, an executor, a Storm cluster) end.

Histograms are classic ones, which Prometheus reads without a setting: use `NAME_bucket`, `NAME_sum`, `NAME_count`.

`supervisor`, `source` and `target` are hosts as supervisors call themselves; `executor` is `<task_start>-<task_end>`;
`nimbus` is the Nimbus by which the operator knows a Storm cluster; `topology` is its name. Agents know topologies by
their id only: join with the operator's `storm_operator_topology_info`:

```
sum by (topology) (
  rate(storm_executor_cpu_seconds_total[1m]) * on (topology_id) group_left (topology) storm_operator_topology_info
)
```

Counters of an agent go on over worker restarts; after a restart of the agent they count from zero. A bound is kept for
each Storm cluster: beyond it the largest values are exported, and `storm_operator_omitted_series` tells how many
are not."""
PIPELINE_HEAD = f"""## Pipeline jobs

A job is gone before anyone can scrape it. Where `{FOLDER_VARIABLE}` names the folder of node exporter's textfile
collector, each leaves the figures of its last run there. `name` is the job's. All are gauges."""


def page() -> str:
    parts = [HEAD]
    for title, metrics in SECTIONS:
        parts += [f"## {title}", contract_table(metrics)]
    parts += [PIPELINE_HEAD, table(("name", "labels", "unit", "meaning"), map(pipeline_row, PIPELINE_METRICS))]
    return "\n\n".join(parts) + "\n"


def contract_table(metrics: Sequence[Metric]) -> str:
    return table(("name", "type", "labels", "unit", "one for each", "meaning"), map(row, metrics))


def table(header: Sequence[str], cells_of_rows: Iterable[Sequence[str]]) -> str:
    rows = [header, ("---",) * len(header), *cells_of_rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def pipeline_row(metric: PipelineMetric) -> tuple[str, ...]:
    return f"`{metric.name}`", names(("name", *metric.labels)), metric.unit, metric.meaning


def names(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def row(metric: Metric) -> tuple[str, ...]:
    bound = f"; {metric.most_series:,} at most" if metric.most_series is not None else ""
    meaning = metric.meaning
    if metric.kind is Kind.HISTOGRAM and metric.buckets:
        meaning += f" Buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)} s."
    return (
        f"`{metric.name}`",
        metric.kind.value,
        names(metric.labels),
        metric.unit,
        metric.one_for_each + bound,
        meaning,
    )


if __name__ == "__main__":
    sys.exit(keep(PAGE, page(), "the metrics contract says"))
