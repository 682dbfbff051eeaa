"""How are Go projects built and tested with the `go` command? Start reading with `toolchain`."""
