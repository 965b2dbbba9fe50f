"""People approve and reject a plan by its id, and a StormRebalance is named by it."""

from __future__ import annotations

import re

from storm_operator.assembly import new_plan_id


def test_no_two_plans_of_one_second_have_the_same_id() -> None:
    ids = [new_plan_id(1_767_268_800.5) for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("p-20260101-120000-[0-9a-f]{4}", one) for one in ids)
