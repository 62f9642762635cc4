"""Short experiments for tests of whole runs."""

from attakit.settings.load import parse_experiment


def make_experiment(settings, changes, folder):
    """The experiment of some tables, each with its changes, whose results go into a folder."""
    for name, table in changes.items():
        old = settings.get(name)
        settings[name] = {**old, **table} if isinstance(old, dict) else table
    settings["report"] = {**settings["report"], "folder": str(folder)}
    return parse_experiment(settings)
