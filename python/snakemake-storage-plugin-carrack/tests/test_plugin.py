"""The suite that Snakemake has for storage plug-ins, on a service of the test's own."""

from __future__ import annotations

import os
import pathlib

from snakemake_interface_storage_plugins.tests import TestStorageBase
from snakemake_storage_plugin_carrack import StorageProvider, StorageProviderSettings

SOCKET = os.environ["CARRACK_TEST_SOCKET"]


class TestStorage(TestStorageBase):  # type: ignore[misc]
    __test__ = True
    files_only = False

    def get_query(self, tmp_path: pathlib.Path) -> str:
        return "carrack://lab/suite/test.txt"

    def get_query_not_existing(self, tmp_path: pathlib.Path) -> str:
        return "carrack://lab/none.txt"

    def get_storage_provider_cls(self) -> type[StorageProvider]:
        return StorageProvider

    def get_storage_provider_settings(self) -> StorageProviderSettings:
        return StorageProviderSettings(service=SOCKET)


def test_matches_of_a_pattern_are_found(tmp_path: pathlib.Path) -> None:
    suite = TestStorage()
    provider = suite._get_provider(tmp_path)
    for name in ("a", "b"):
        provider.fs.makedirs("lab/matches", exist_ok=True)
        provider.fs.pipe(f"lab/matches/{name}.txt", b"1")
    found = set(provider.object("carrack://lab/matches/{sample}.txt").list_candidate_matches())
    assert {"carrack://lab/matches/a.txt", "carrack://lab/matches/b.txt"} <= found
