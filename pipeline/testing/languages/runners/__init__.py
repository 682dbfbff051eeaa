"""How are a language's tests run in the box: by which programs of ours, and how are their records read?

`exec_guard` and `processes` run inside the box, with the standard library only. The others ask and read.
"""
