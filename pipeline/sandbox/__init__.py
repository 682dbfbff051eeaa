"""What an agent or a test sees, and what isolates it; what of it may be told."""
