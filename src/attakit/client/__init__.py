"""Speak with a service from Python.

>>> from attakit.client import Client
>>> with Client("http://localhost:8000", token="atk_…") as service:  # doctest: +SKIP
...     (prediction,) = service.predict("cat.jpg")
...     print(prediction.class_name, prediction.probabilities)
"""

from attakit.client.client import Client
from attakit.client.records import (
    Accuracy,
    Alarm,
    Guess,
    Labels,
    Lease,
    Prediction,
    Sample,
    Status,
    Version,
)

__all__ = [
    "Accuracy",
    "Alarm",
    "Client",
    "Guess",
    "Labels",
    "Lease",
    "Prediction",
    "Sample",
    "Status",
    "Version",
]
