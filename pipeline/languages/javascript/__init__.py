"""JavaScript and TypeScript projects: tested with `node --test`, vitest or jest; start reading with `toolchain`."""
