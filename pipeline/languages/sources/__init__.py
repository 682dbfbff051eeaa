"""What can be read from sources of any language? Means of forgery, imports, examples, small faults.

Each module here finds the reader of a file's language in the table, and has its protocol. Pure; the driver asks through
`languages.readers`, which gives each reader limits.
"""
