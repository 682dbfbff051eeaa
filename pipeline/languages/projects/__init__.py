"""What measures a repository: which toolchains, in which folders, and one observation of all of them."""
