"""What an API process is told: by arguments, else by environment variables GAF_SERVICE_*."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from kernel_gen.errors import InvalidInput


class Settings(BaseSettings):
    """Settings of one API process. Nothing is read before an instance is made."""

    model_config = SettingsConfigDict(env_prefix="GAF_SERVICE_", frozen=True, extra="forbid")

    db: str = Field(description="SQLAlchemy URL of the store")
    host: str = Field(default="127.0.0.1", description="address the server listens on")
    port: int = Field(default=8400, ge=0, le=65535, description="port the server listens on")
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="names under which clients reach the server, besides its address"
    )
    max_body_bytes: int = Field(default=64 << 20, ge=0, description="largest request body")
    event_poll_seconds: float = Field(
        default=0.25, gt=0, description="how often a stream of events asks the database"
    )
    key_folder: Path | None = Field(
        default=None, description="folder of the signing key; the user's own by default"
    )
    trust_folder: Path | None = Field(
        default=None, description="folder of trusted public keys; the user's own by default"
    )

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_settings(**given: Any) -> Settings:
    """Settings of the arguments and the environment; raises InvalidInput, which names the variable
    that holds something else than expected."""
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = [
            f"{_variable(e['loc'])}: {e['msg']}, not {e['input']!r:.100}" for e in error.errors()
        ]
        raise InvalidInput("; ".join(wrong)) from error
    except SettingsError as error:  # a list that is no JSON
        raise InvalidInput(f'{error} (a list is JSON, as in ["name"])') from error


def _variable(place: tuple[int | str, ...]) -> str:
    return Settings.model_config.get("env_prefix", "") + str(place[0]).upper()
