"""Suites: grids of runs, in parallel on one machine or on a cluster."""
