"""Image data sets: where they lie, what they must hold, and how they become a task."""
