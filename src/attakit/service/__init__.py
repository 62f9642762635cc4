"""A model behind HTTP that asks people, learns from their answers, and proves itself first."""
