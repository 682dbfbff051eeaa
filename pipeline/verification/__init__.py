"""Measuring again what was measured: `redfirst verify` and `redfirst tdd`. No agent, no run, nothing written down."""
