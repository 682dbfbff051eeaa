"""Go projects: built and tested with the `go` command; `toolchain` is its front."""
