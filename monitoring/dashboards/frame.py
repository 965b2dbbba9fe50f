"""What all dashboards share: variables, links to each other, plans as annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

from dashboards.look import DATASOURCE, AnyPanel

TAG = "storm-operator"
EVERYTHING = ".*"

CLUSTERS = 'nimbus=~"$cluster"'
"""Picks the operator's series of the chosen clusters."""
TOPOLOGIES = f'{CLUSTERS},topology=~"$topology"'
"""Picks the operator's series of the chosen topologies."""
AGENTS = 'topology_id=~"$topology_id"'
"""Picks agents' series of the chosen topologies."""


class Uid(StrEnum):
    """The address of each dashboard; its file has the same name."""

    OVERVIEW = "storm-overview"
    TOPOLOGY = "storm-topology"
    TRAFFIC = "storm-inter-node-traffic"
    DECISIONS = "storm-placement-decisions"
    ENFORCEMENT = "storm-enforcement"
    OPERATOR = "storm-operator"
    PIPELINE = "storm-pipeline"


@dataclass(frozen=True, slots=True)
class Section:
    """A row's title and its panels, filled in from left to right."""

    title: str
    panels: Sequence[AnyPanel]


def last_known(selector: str) -> str:
    """The newest value of two minutes: while workers restart, figures are missing, and a table would be empty.

    Take `max` of it before any sum: what another pod of the operator told before this one is there as long.
    """
    return f"last_over_time({selector}[2m])"


def to_topology() -> str:
    """The address of the Topology dashboard for a row of a table with the columns Topology and Cluster.

    Nimbus knows each name once: with the row's cluster it is that very topology. Time and namespaces stay as they are.
    """
    chosen = "var-topology=${__data.fields.Topology}&var-cluster=${__data.fields.Cluster}&${namespace:queryparam}"
    return f"/d/{Uid.TOPOLOGY}?var-datasource=${{datasource}}&{chosen}&${{__url_time_range}}"


def dashboard(
    uid: Uid,
    title: str,
    description: str,
    sections: Sequence[Section],
    *,
    one_topology: bool = False,
    since: str = "now-1h",
) -> build.Dashboard:
    """A whole dashboard. `one_topology`: it is about one at a time."""
    made = (
        build.Dashboard(title)
        .uid(uid.value)
        .description(description)
        .tags([TAG])
        .time(since, "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(links_to_the_others())
        .annotation(plans())
        .readonly()
    )
    for variable in variables(one_topology):
        made = made.with_variable(variable)
    for section in sections:
        made = made.with_row(build.Row(section.title))
        for panel in section.panels:
            made = made.with_panel(panel)
    return made


def links_to_the_others() -> build.DashboardLink:
    """Side by side at the top; what is chosen here stays chosen there."""
    link = build.DashboardLink("Storm").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.include_vars(True).keep_time(True).as_dropdown(False).icon("external link").tooltip("")


def plans() -> build.AnnotationQuery:
    """A mark where each plan was made: the value is the time, which Grafana takes in milliseconds."""
    query = build.AnnotationQuery().name("Plans").enable(True).icon_color("purple").datasource(DATASOURCE)
    return query.expr(
        f"max by (nimbus, topology, plan, policy, reason) (storm_operator_last_plan_info{{{TOPOLOGIES}}})"
        " * on (nimbus, topology) group_left ()"
        f" max by (nimbus, topology) (storm_operator_last_plan_timestamp_seconds{{{TOPOLOGIES}}}) * 1000"
    )


def variables(one_topology: bool) -> list[build.QueryVariable | build.DatasourceVariable]:
    info = f'storm_operator_topology_info{{{CLUSTERS},namespace=~"$namespace"'
    topology = chosen("topology", "Topology", "Topologies, by name", f"label_values({info}}}, topology)")
    topology = topology if one_topology else for_all(topology, "")
    ids = chosen(
        "topology_id",
        "",
        "Storm's ids of those topologies",
        f'label_values({info},topology=~"$topology"}}, topology_id)',
    )
    return [
        build.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        for_all(
            chosen(
                "cluster",
                "Cluster",
                "Storm clusters, by their Nimbus",
                "label_values(storm_operator_topologies, nimbus)",
            )
        ),
        for_all(
            chosen(
                "namespace",
                "Namespace",
                "Namespaces of StormTopology resources; none in standalone mode",
                f"label_values(storm_operator_topology_info{{{CLUSTERS}}}, namespace)",
            )
        ),
        topology,
        for_all(ids, "").hide(model.VariableHide.HIDE_VARIABLE),
    ]


def chosen(name: str, label: str, description: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )


def for_all(variable: build.QueryVariable, everything: str = EVERYTHING) -> build.QueryVariable:
    """Several can be chosen; all of them at first. `everything` stands for all; empty: each by its name."""
    all_of_them = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    variable = variable.multi(True).include_all(True).current(all_of_them)
    return variable.all_value(everything) if everything else variable
