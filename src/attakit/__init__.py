"""Keep a deployed classifier up to date on a shifting stream for the price of a few labels."""

__version__ = "0.2.0"
