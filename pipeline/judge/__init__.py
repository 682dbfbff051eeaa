"""What counts: a report, a RED, a changed path. Decides, and does no I/O."""
