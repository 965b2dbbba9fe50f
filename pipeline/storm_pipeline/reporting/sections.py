"""All sections of the report, in their order."""

from __future__ import annotations

from storm_pipeline.reporting.intake import INTAKE
from storm_pipeline.reporting.learned import LEARNED
from storm_pipeline.reporting.section import Known, Section
from storm_pipeline.reporting.traffic import TRAFFIC


def sections(known: Known) -> list[Section]:
    """Each of them, also where there is nothing: it then says why."""
    return [make(known) for make in (*TRAFFIC, *LEARNED, *INTAKE)]
