"""How are JavaScript and TypeScript projects tested with `node --test`, vitest or jest? Start with `toolchain`."""
