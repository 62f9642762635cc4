"""Use a service from Python.

Examples
--------
>>> from attakit.client import Client
>>> with Client("http://localhost:8000", token="atk_…") as service:  # doctest: +SKIP
...     (prediction,) = service.predict("cat.jpg")
...     print(prediction.class_name, prediction.probabilities)
"""

from attakit.client.bodies import (
    ContentBody,
    GuessBody,
    LeaseBody,
    OwnAnswerBody,
    PredictionBody,
    SampleBody,
)
from attakit.client.client import Client
from attakit.client.dashboard_bodies import (
    AccuracyBody,
    AlarmBody,
    LabelsBody,
    StatusBody,
    VersionBody,
)

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
