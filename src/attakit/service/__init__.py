"""A model behind HTTP that asks people, learns from their answers, and proves itself first."""

# Nothing is imported here: storage and exchange must work without torch.
__all__: list[str] = []
