"""The tests that were there before a task: none may break, be removed or check less unless somebody is told.

`regression` finds those that break, `loosened` and `changed_helpers` those that notice less, `frozen` holds them fixed
from RED to GREEN. It may import what `measure` may.
"""
