"""Words in, one call of app, words or a document out."""
