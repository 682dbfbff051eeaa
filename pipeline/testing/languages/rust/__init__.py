"""How are Rust projects built and tested with cargo? Start reading with `toolchain`."""
