"""How the tests of a compiled or scripted language are run in the box: our programs there, and what they answer.

`recording`, `exec_guard` and `processes` run inside the box, with the standard library only. The others ask and
read.
"""
