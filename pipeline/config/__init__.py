"""What the user may set, where each value comes from, and what a repository may not widen by itself (contract 4)."""
