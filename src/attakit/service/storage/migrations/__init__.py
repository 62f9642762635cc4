"""Migrations of the tables, one module each, in the order of their revisions.

A module names its `revision` and the `down_revision` before it, and has a function `upgrade` that
gets Alembic's operations. It runs in the transaction of `attakit.service.storage.schema`, on SQLite
without foreign keys. It imports nothing that may change later, and is never changed itself.
"""
