"""What the theory says about a recorded run."""
