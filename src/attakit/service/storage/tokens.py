"""TokenStore: who may do what. Tokens are shown once and stored as hashes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import get_args

from sqlalchemy import select

from attakit.errors import SettingError, UnknownName, check_choice, unknown_name
from attakit.service.storage.database import Database
from attakit.service.storage.rows import Role, Token
from attakit.service.storage.tables import add_event, tokens

RESERVED = ("learner", "local", "service")  # they are identified without a token
_LONGEST = 64


class TokenStore:
    """Tokens by name. A name is used only once, so that the log is unambiguous."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, role: Role, who: str = "local") -> str:
        """Create a token and return it; it cannot be shown again."""
        _check_name(name)
        check_choice("Token", "role", role, get_args(Role))
        # 256 random bits cannot be guessed, so a plain hash is as safe as a slow one.
        token = f"atk_{secrets.token_urlsafe(32)}"
        now = self._database.clock()
        with self._database.write() as connection:
            if connection.scalar(select(tokens.c.name).where(tokens.c.name == name)) is not None:
                raise SettingError(
                    f"Token: the name {name!r} was used before. Choose another one, so that the "
                    f"log says who it was."
                )
            values = {"name": name, "role": role, "hash": hash_token(token), "created": now}
            connection.execute(tokens.insert().values(values))
            add_event(connection, now, "token", who, name=name, role=role)
        return token

    def valid(self) -> dict[str, tuple[str, Role]]:
        """Return name and role of each valid token, by the hash of the token.

        The time of a hash lookup reveals nothing about the token.
        """
        with self._database.read() as connection:
            rows = connection.execute(select(tokens).where(tokens.c.revoked.is_(None))).all()
        return {row.hash: (row.name, row.role) for row in rows}

    def check(self, token: str) -> tuple[str, Role] | None:
        """Return the owner and role of a token; None if it is unknown or revoked."""
        return self.valid().get(hash_token(token))

    def revoke(self, name: str, who: str = "local") -> None:
        """Revoke a token."""
        now = self._database.clock()
        with self._database.write() as connection:
            known = connection.scalars(select(tokens.c.name)).all()
            if name not in known:
                raise _unknown(name, known)
            valid = tokens.update().where(tokens.c.name == name, tokens.c.revoked.is_(None))
            if connection.execute(valid.values(revoked=now)).rowcount:
                add_event(connection, now, "token revoked", who, name=name)

    def all(self) -> tuple[Token, ...]:
        """Return all tokens ever created, without the tokens themselves."""
        query = select(tokens).order_by(tokens.c.created, tokens.c.name)
        return self._database.find(Token, query)

    def any(self) -> bool:
        """True if a token was ever created. Revoking the last one must not open the service."""
        return self._database.scalar(select(tokens.c.name).limit(1)) is not None


def hash_token(token: str) -> str:
    """Return the hash that is stored instead of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _check_name(name: str) -> None:
    if not name or len(name) > _LONGEST or not name.isprintable() or name != name.strip():
        raise SettingError(
            f"Token: a name must have 1 to {_LONGEST} printable characters and no space at its "
            f"ends, got {name!r}."
        )
    if name in RESERVED:
        raise SettingError(
            f"Token: the name {name!r} is used by the service itself. Choose another one."
        )


def _unknown(name: str, known: Sequence[str]) -> UnknownName:
    if not known:
        return UnknownName(f"Token: there is no token {name!r}. No token exists. Create one first.")
    return unknown_name("token", name, known)
