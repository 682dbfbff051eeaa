"""What is to be run, in which order, and how many drivers at once (ADR-R210).

Start reading at `worker.py`, the loop; `lines.py` has what is said of orders, `orders.py` keeps it, `pick.py` decides
who begins, `slots.py` counts the drivers of the machine. What an order needs to know of runs and issues is handed in by
`pipeline/app/work.py`.
"""
