"""Go projects: built and tested with the `go` command; start reading with `toolchain`."""
