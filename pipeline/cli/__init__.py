"""The command line: one module a command or group, no logic; `driving` is the composition root."""
