"""JavaScript and TypeScript projects: tested with `node --test`, vitest or jest; `toolchain` is its front."""
