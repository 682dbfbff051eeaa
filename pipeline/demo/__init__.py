"""A whole run on an example project, with scripted agents: what `redfirst demo` shows."""
