"""How are tests measured, for steps and for `verify`? Composed trees, test runs over them, probes of tests.

Whoever measures has a `MeasurementContext`: a run's `Context` is one, and so is `VerificationContext`. Start reading at
`measuring.measure`, then at `composed_trees.compose`.
"""

from __future__ import annotations
