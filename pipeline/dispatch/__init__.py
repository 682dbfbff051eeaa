"""One dispatch, from the prompt to the admitted change: view, box, backend, gate (architecture 6)."""
