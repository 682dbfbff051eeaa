"""Rust projects: built and tested with cargo; start reading with `toolchain`."""
