"""Every decision: one table of values (`matrix`), one pure function over it (`machine`), its pictures (`render`)."""
