"""A model behind HTTP that asks people, learns from their answers, and proves itself first."""

# Only what works without torch is imported here: labelling must stay light.
from attakit.service.saved_settings import find_settings, open_service

__all__ = ["find_settings", "open_service"]
