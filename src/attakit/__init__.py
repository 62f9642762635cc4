"""Keep a deployed classifier accurate while its data changes, for the price of a few labels."""

__version__ = "0.2.0"
