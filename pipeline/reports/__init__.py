"""What each role may answer, and what an answer means. Pure: no I/O anywhere in this package."""
