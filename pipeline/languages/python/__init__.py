"""Python projects: tested with pytest; `toolchain` is its front."""
