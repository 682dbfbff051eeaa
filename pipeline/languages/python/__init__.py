"""Python projects: tested with pytest; start reading with `toolchain`."""
