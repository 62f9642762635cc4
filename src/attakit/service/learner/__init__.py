"""The learner: takes turns over samples, asks people, trains, and releases proven models."""
