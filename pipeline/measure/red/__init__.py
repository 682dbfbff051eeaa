"""How is RED measured: tests over code that does not have the behaviour yet?

`over_stubs` has tests whose file could not be imported, `import_stubs` the names that tests import, `undeclared_tests`
tests beside code that nothing compiles, `asked_tests` the failing tests that a task takes up. `probes.revert` measures
RED again. It may import what `measure` may.
"""
