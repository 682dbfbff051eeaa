"""What follows what: the engine, the routing matrix, recipes. Decides, and does no I/O."""
