"""Image data sets: where they are, what they must contain, and how they become a task."""
