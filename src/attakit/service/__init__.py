"""A model behind HTTP that asks people, learns from their answers, and proves itself first."""

# Import only what works without torch: labelling must stay light.
from attakit.service.saved_settings import find_settings, open_service

__all__ = ["find_settings", "open_service"]
