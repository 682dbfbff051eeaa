"""A run on disk: its folder, journal, lock, claim, private checkout (architecture 5 and 9). The disk is the truth."""
