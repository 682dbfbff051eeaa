"""What does redfirst know of programming languages? A folder for each, one table, and what they share.

`table` lists them. `protocol` says what running tests has to offer; `sources` what is read from source texts. Nothing
outside of this package names a language. Start with `table.py`, then with the folder of a language that you know.
"""
