"""How are tests from before a task protected? None may break, be removed or be changed to fit without a report.

`regression` finds those that break, `as_they_were` those that were changed to fit, `frozen` holds them fixed from RED
to GREEN. It may import what `measure` may.
"""
