"""The service over HTTP: predictions for machines, questions for people, numbers for both."""

from attakit.service.web.app import create_app

__all__ = ["create_app"]
