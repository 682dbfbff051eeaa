"""Which toolchains measure a repository, in which folders, and what is their one observation?"""
