#!/usr/bin/env python3
"""Measures Carrack beside other programs on this host: speed, and CPU time of both sides together. See README.md."""
import argparse, contextlib, datetime, getpass, hashlib, json, os, pathlib, re, secrets, shlex, shutil, signal, socket
import statistics, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
HOST = "127.0.0.1"
os.environ["PATH"] += ":/usr/sbin:/sbin"


# ---- what is measured
# name: (number of files, bytes of each, directories, may they be seen at --quick: files, bytes); memory has no destination.
WORKLOADS = {
    "file": ((1, 4 << 30, 0), (1, 512 << 20, 0)),
    "memory": ((1, 4 << 30, 0), (1, 512 << 20, 0)),
    "small": ((20000, 4096, 200), (4000, 4096, 40)),
    "medium": ((1000, 1 << 20, 10), (200, 1 << 20, 10)),
}
FLOOR, MEMORY, TREE, FILE = "floor", "memory", "tree", "file"
AES = "-c aes128-gcm@openssh.com"
CARRACK = "{carrack} --no-progress"
RAW = "--digest none --verify none"
SCP = "scp -q -F {ssh_config}"
TAR = "tar -C {src} -cf - . | {ssh} %s {host} 'mkdir {dst} && tar -C {dst} -xf -'"
# A tree is {src}, its contents go to {dst}, which does not exist.
PEERS = {  # name: (programs and servers it needs, {kind of workload: command})
    "cp": ((), {FILE: "cp {src} {dst}", TREE: "cp -r {src} {dst}", MEMORY: "cat {src} > {dst}"}),
    "carrack-ssh": (("sshd",), {FILE: CARRACK + " -e '{ssh}' {src} {host}:{dst}", TREE: CARRACK + " -e '{ssh}' {src}/ {host}:{dst}",
                                MEMORY: CARRACK + " -e '{ssh}' {host}:{src} null:"}),
}
