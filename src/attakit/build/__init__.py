"""Turn settings into objects: data sets, models, methods and oracles. All names are here."""

from attakit.build.data import DATA_SETS, build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import Task

__all__ = [
    "DATA_SETS",
    "Task",
    "build_ledger",
    "build_method",
    "build_oracle",
    "build_stream",
    "load_task",
    "source_classifier",
]
