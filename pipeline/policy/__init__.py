"""Who may do what, and what may be handed to whom: pure rules about paths, roles, texts."""
