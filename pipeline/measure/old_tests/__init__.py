"""What becomes of the tests that were there before a task: they may not break, go, or notice less without a word.

`regression` finds those that break, `loosened` and `changed_helpers` those that notice less, `frozen` holds them fixed
from RED to GREEN. It may import what `measure` may.
"""
