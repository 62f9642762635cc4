"""The paper's numbers, and its table layouts filled with our runs."""
