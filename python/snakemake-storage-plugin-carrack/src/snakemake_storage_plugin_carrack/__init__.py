"""Storage of Snakemake at endpoints of a Carrack service: `storage.carrack("carrack://ENDPOINT/PATH")`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from snakemake_interface_storage_plugins.io import IOCacheStorageInterface, Mtime, get_constant_prefix
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_object import (
    StorageObjectGlob,
    StorageObjectRead,
    StorageObjectWrite,
)
from snakemake_interface_storage_plugins.storage_provider import (
    ExampleQuery,
    Operation,
    QueryType,
    StorageProviderBase,
    StorageQueryValidationResult,
)

from carrack.filesystem import CarrackFileSystem

SCHEME = "carrack://"


@dataclass
class StorageProviderSettings(StorageProviderSettingsBase):
    """Where the service is, and the token for it."""

    service: str | None = field(
        default=None,
        metadata={
            "help": "https://HOST[:PORT]#sha256:FINGERPRINT or the path of a socket [default: as carrack finds it]"
        },
    )
    token: str | None = field(
        default=None, metadata={"help": "Token of the service [default: that of carrack login]", "env_var": True}
    )


class StorageProvider(StorageProviderBase):  # type: ignore[misc]
    """One service."""

    def __post_init__(self) -> None:
        settings = self.settings or StorageProviderSettings()
        # One that is not shared: jobs are processes that Snakemake forks.
        self.fs = CarrackFileSystem(settings.service, settings.token, skip_instance_cache=True)

    @classmethod
    def example_queries(cls) -> list[ExampleQuery]:
        query = "carrack://lab/project/counts.tsv"
        return [ExampleQuery(query=query, type=QueryType.ANY, description="A file or a directory of an endpoint")]

    def rate_limiter_key(self, query: str, operation: Operation) -> Any:
        return None

    def default_max_requests_per_second(self) -> float:
        return 0.0

    def use_rate_limiter(self) -> bool:
        return False

    @classmethod
    def is_valid_query(cls, query: str) -> StorageQueryValidationResult:
        is_valid = re.fullmatch(r"carrack://[A-Za-z0-9][A-Za-z0-9._-]*/.+", query, re.DOTALL) is not None
        why = "" if is_valid else "it is not carrack://ENDPOINT/PATH"
        return StorageQueryValidationResult(query=query, valid=is_valid, reason=why)


class StorageObject(StorageObjectRead, StorageObjectWrite, StorageObjectGlob):  # type: ignore[misc]
    """One file or directory at an endpoint."""

    @property
    def fs(self) -> CarrackFileSystem:
        return self.provider.fs

    async def inventory(self, cache: IOCacheStorageInterface) -> None:
        key = self.cache_key()
        if key in cache.exists_in_storage:
            return
        try:
            told = self.fs.info(self.query)
        except FileNotFoundError:
            cache.exists_in_storage[key] = False
            return
        cache.exists_in_storage[key] = True
        cache.mtime[key] = Mtime(storage=told["mtime"].timestamp())
        cache.size[key] = told["size"] if told["type"] == "file" else 0

    def get_inventory_parent(self) -> str | None:
        return None

    def local_suffix(self) -> str:
        return str(self.query).removeprefix(SCHEME)

    def cleanup(self) -> None:
        """Nothing is left beside the local copy, which is Snakemake's."""

    def exists(self) -> bool:
        return bool(self.fs.exists(self.query))

    def mtime(self) -> float:
        return float(self.fs.info(self.query)["mtime"].timestamp())

    def size(self) -> int:
        told = self.fs.info(self.query)
        return int(told["size"]) if told["type"] == "file" else 0

    def local_footprint(self) -> int:
        return int(self.fs.du(self.query))

    def retrieve_object(self) -> None:
        local = self.local_path()
        if self.fs.isdir(self.query):
            local.mkdir(parents=True, exist_ok=True)
            self.fs.get(self.query.rstrip("/") + "/", f"{local}/", recursive=True)
        else:
            self.fs.get_file(self.query, str(local))

    def store_object(self) -> None:
        local = self.local_path()
        if local.is_dir():
            if self.exists():
                self.remove()
            self.fs.makedirs(self.query, exist_ok=True)
            self.fs.put(f"{local}/", self.query.rstrip("/") + "/", recursive=True)
        else:
            self.fs.put_file(str(local), self.query)

    def remove(self) -> None:
        self.fs.rm(self.query, recursive=True)

    def list_candidate_matches(self) -> Iterable[str]:
        prefix = get_constant_prefix(self.query)
        directory = prefix.rsplit("/", 1)[0] if "/" in prefix.removeprefix(SCHEME) else prefix
        return [SCHEME + found for found in self.fs.find(directory, withdirs=True)]
