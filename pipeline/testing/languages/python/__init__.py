"""How are Python projects tested with pytest? Start reading with `toolchain`."""
