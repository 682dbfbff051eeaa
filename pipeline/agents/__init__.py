"""How one agent is asked, from its prompt to the change that is admitted."""
