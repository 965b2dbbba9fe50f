"""What --heap and --off-heap of the pipeline's jobs may say."""

from __future__ import annotations

import pytest
import typer

from storm_pipeline.options import settings_of


@pytest.mark.parametrize("memory", ["2g", "512m", "1024M", "2000000k", "1t"])
def test_what_java_and_spark_take_is_left_as_it_is(memory: str) -> None:
    settings = settings_of("local[1]", memory, memory, None)
    assert (settings.heap, settings.off_heap) == (memory, memory)


@pytest.mark.parametrize("memory", ["2x", "", "g", "2", "2gb", "1.5g", "-2g", "0g", "2 g"])
def test_other_sizes_are_refused_by_the_name_of_the_option(memory: str) -> None:
    for option, heap, off_heap in (("--heap", memory, "2g"), ("--off-heap", "2g", memory)):
        with pytest.raises(typer.BadParameter) as refused:
            settings_of("local[1]", heap, off_heap, None)
        said = f"{option}: {memory!r} must be a number above 0 with a unit, like 2g or 512m"
        assert str(refused.value) == said
