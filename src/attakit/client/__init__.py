"""Use a service from Python.

>>> from attakit.client import Client
>>> with Client("http://localhost:8000", token="atk_…") as service:  # doctest: +SKIP
...     (prediction,) = service.predict("cat.jpg")
...     print(prediction.class_name, prediction.probabilities)
"""

from attakit.client.bodies import (
    AccuracyBody,
    AlarmBody,
    ContentBody,
    GuessBody,
    LabelsBody,
    LeaseBody,
    OwnAnswerBody,
    PredictionBody,
    SampleBody,
    StatusBody,
    VersionBody,
)
from attakit.client.client import Client

__all__ = [
    "AccuracyBody",
    "AlarmBody",
    "Client",
    "ContentBody",
    "GuessBody",
    "LabelsBody",
    "LeaseBody",
    "OwnAnswerBody",
    "PredictionBody",
    "SampleBody",
    "StatusBody",
    "VersionBody",
]
