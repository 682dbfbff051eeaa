"""Rust projects: built and tested with cargo; `toolchain` is its front."""
