"""Graph partitioners on the same instance at the same balance: `python -m plan.yardsticks kahip --parts 70 ...`.

A vertex is an executor and weighs its CPU in millicores, an edge the tuples of both directions as whole numbers. They
know nothing of slots, of what is in force or of what supervisors cost: only as many parts as the plan compared with
uses supervisors, none heavier than that plan's heaviest (`--imbalance`, the heaviest over the mean, less one).
Prints one line of JSON and writes the parts to `--assignment`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
from plan.instance import Instance, add_scale_options, make_instance, scale_from
from plan.stop_watch import StopWatch, Took

Ints = npt.NDArray[np.int64]
Graph = tuple[Ints, Ints, Ints, Ints]

LARGEST_TOTAL = 2**30
"""KaHIP adds edge weights up as 32-bit integers."""
KAHIP_ECO = 1
METIS_TRIES, METIS_STRICTER = 6, 0.6
METIS_PER_MILLE = 1000


def graph_of(instance: Instance) -> Graph:
    """Vertex weights, and the graph as METIS wants it: begins of rows, edge weights, neighbours."""
    traffic = instance.snapshot.traffic.symmetric()
    traffic.setdiag(0.0)
    traffic.eliminate_zeros()
    scale = min(1.0, LARGEST_TOTAL / float(traffic.sum()))
    millicores = np.array([instance.demand.millicores[e] for e in instance.snapshot.traffic.executors])
    weights = np.maximum(np.round(traffic.data * scale), 1.0).astype(np.int64)
    return millicores.astype(np.int64), traffic.indptr.astype(np.int64), weights, traffic.indices.astype(np.int64)


def kahip_eco(instance: Instance, parts: int, imbalance: float, seed: int) -> tuple[Ints, Took]:
    """KaFFPa with its preconfiguration eco; parts and seconds."""
    import kahip

    vertices, begins, edges, neighbours = (array.tolist() for array in graph_of(instance))
    watch = StopWatch()
    _, blocks = kahip.kaffpa(vertices, begins, edges, neighbours, parts, imbalance, True, seed, KAHIP_ECO)
    return np.array(blocks, dtype=np.int64), watch.took()


def metis(instance: Instance, parts: int, imbalance: float, seed: int) -> tuple[Ints, Took]:
    """METIS, k-way and by recursive bisection; where both overshoot the balance, asked for ever stricter ones.

    The first that keeps the balance (the better of the two), else the best balanced. Seconds are of its call alone.
    """
    graph = graph_of(instance)
    tries: list[tuple[float, float, Ints, Took]] = []
    for attempt in range(METIS_TRIES):
        asked = imbalance * METIS_STRICTER**attempt
        for recursive in (False, True):
            found, cut, took = _metis_once(graph, parts, asked, seed, recursive)
            tries.append((max(imbalance, imbalance_of(graph[0], found)), cut, found, took))
        if min(tried[0] for tried in tries) <= imbalance:
            break
    _, _, found, took = min(tries, key=lambda tried: tried[:2])
    return found, took


def _metis_once(graph: Graph, parts: int, imbalance: float, seed: int, recursive: bool) -> tuple[Ints, float, Took]:
    import pymetis

    vertices, begins, edges, neighbours = graph
    options = pymetis.Options()
    options.seed = seed
    options.ufactor = max(1, int(imbalance * METIS_PER_MILLE))
    adjacency = pymetis.CSRAdjacency(begins, neighbours)
    watch = StopWatch()
    cut, blocks = pymetis.part_graph(
        parts, adjacency, vweights=vertices, eweights=edges, recursive=recursive, options=options
    )
    return np.array(blocks, dtype=np.int64), float(cut), watch.took()


PARTITIONERS = {"kahip": kahip_eco, "metis": metis}


def imbalance_of(weights: npt.ArrayLike, places: Ints) -> float:
    """The heaviest of the parts that `places` names over their mean, less one."""
    loads = np.bincount(places, weights=np.asarray(weights, dtype=np.float64))
    return float(loads.max()) / (float(loads.sum()) / len(np.unique(places))) - 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("partitioner", choices=sorted(PARTITIONERS))
    add_scale_options(parser)
    parser.add_argument("--parts", type=int, required=True)
    parser.add_argument("--imbalance", type=float, required=True)
    parser.add_argument("--assignment", type=Path, required=True, help="a .npy file to write")
    options = parser.parse_args()
    instance = make_instance(scale_from(options))
    places, took = PARTITIONERS[options.partitioner](instance, options.parts, options.imbalance, options.seed)
    np.save(options.assignment, places)
    print(json.dumps({"seconds": took.wall_seconds, "cpu_seconds": took.cpu_seconds}), flush=True)


if __name__ == "__main__":
    main()
