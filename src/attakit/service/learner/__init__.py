"""The learner: takes samples in turns, asks people, trains, and lets proven models answer."""
