"""Suites: grids of runs, side by side on one machine or on a cluster."""
