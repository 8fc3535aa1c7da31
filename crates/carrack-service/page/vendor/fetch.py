#!/usr/bin/env python3
"""Fetches the page's vendored files again from the npm registry and compares them with manifest.json.

Without an argument it compares: exit code 1 if a file here or upstream differs from the manifest. It also prints the
newest version of each package. With --write it writes the files and their digests.
"""
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
REGISTRY = "https://registry.npmjs.org"


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def main():
    write = sys.argv[1:] == ["--write"]
    manifest = json.loads((HERE / "manifest.json").read_text())
    differ = False
    for package in manifest["packages"]:
        about = json.loads(get(f"{REGISTRY}/{package['name']}"))
        newest = about["dist-tags"]["latest"]
        print(f"{package['name']} {package['version']} (newest {newest}), {package['licence']}")
        archive = tarfile.open(fileobj=io.BytesIO(get(about["versions"][package["version"]]["dist"]["tarball"])))
        for file in package["files"]:
            upstream = archive.extractfile(f"package/{file['from']}").read()
            # Browsers resolve only paths: the one import by name becomes a path.
            ours = upstream
            for old, new in file.get("replace", {}).items():
                ours = ours.replace(old.encode(), new.encode())
            path = HERE / file["to"]
            if write:
                path.write_bytes(ours)
                file["sha256"], file["upstream_sha256"] = sha256(ours), sha256(upstream)
            same = (path.exists() and sha256(path.read_bytes()) == file["sha256"]
                    and sha256(upstream) == file["upstream_sha256"] and sha256(ours) == file["sha256"])
            differ |= not same
            print(f"  {'same' if same else 'DIFFERS'} {file['to']}")
    if write:
        (HERE / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    sys.exit(1 if differ else 0)


main()
