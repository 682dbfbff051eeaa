"""How are tests from before a task protected? None may break, be removed or check less without a report.

`regression` finds those that break, `loosened` and `changed_helpers` those that notice less, `frozen` holds them fixed
from RED to GREEN. It may import what `measure` may.
"""
