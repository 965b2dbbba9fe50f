"""How `adaptive` searches: the problem in numbers, a multilevel partition for a fresh start, and a local search.

All inner loops are machine code over arrays: `partition_state` (who is where), `step_prices` (what a step costs),
`refinement`, `emptying` and `kicks` (the steps). `problem` and `arrays` lead there from values, and back.
"""
