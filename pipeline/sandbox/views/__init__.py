"""Which files does an agent or a measurement get, and how were they changed?

A view is made from a tree, given away, compared, and thrown away: as an overlay over the run's checkout, or as a copy
that is put back. Start with `view.py` (the protocol), then `views.py` (which kind is taken) and `manifest.py` (what
is in a folder, byte by byte).
"""
