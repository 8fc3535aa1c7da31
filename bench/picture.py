"""The picture in README.md: four workloads, the best program first, each marked with what it does for its time.

It is for people who choose a program. It shows medians of rates only; spread and CPU time are in the tables. The width is 700
units, which is what a README gets on most pages, and the colours follow the reader's choice of light or dark.
"""
import html
import statistics

WIDTH, NAME_X, MARKS_X, VERIFIED_X, BAR_X, BAR_WIDTH, ROW = 700, 10, 162, 238, 330, 300, 21

# What ssh's programs are measured with, where both were: its default cipher and its fastest one.
SSH = ["", "-aes128gcm"]
GRIDFTP = ["gridftp-p1", "gridftp-p4", "gridftp-p16", "gridftp-cc4"]
XRDCP = ["xrdcp-S1", "xrdcp-S4", "xrdcp-parallel4"]

# Name in the picture; the peers that it stands for, of which the fastest is shown; encrypted?; verified? `None`: not a copy.
PROGRAMS = [
    ("Carrack over ssh", ["carrack-ssh"], True, True),
    ("Carrack to a node", ["carrack-node"], True, True),
    ("Carrack to a node", ["carrack-node-clear"], False, True),
    ("Carrack to a node", ["carrack-node-unseen"], False, False),
    ("scp", ["scp" + cipher for cipher in SSH], True, False),
    ("rsync over ssh", ["rsync-ssh" + cipher for cipher in SSH], True, True),
    ("rsync to its daemon", ["rsync-daemon"], False, True),
    ("tar through ssh", ["pipe-ssh" + cipher for cipher in SSH], True, False),
    ("GridFTP", GRIDFTP, False, False),
    ("xrdcp", XRDCP, False, False),
    ("iperf3: network alone", ["iperf3-P16"], None, None),
]

# Workload; the link, where there are several; title; what is counted; its unit.
PANELS = [
    ("file", None, "One file of 4 GiB", "from memory to memory, GB/s", lambda run: payload(run) / 1e9 / run["seconds"]),
    ("small", None, "20,000 files of 4 KiB", "from memory to memory, files/s", lambda run: run["files"] / run["seconds"]),
    ("disk", None, "One file of 4 GiB, from disk to disk", "until it is on the disk, GB/s",
     lambda run: payload(run) / 1e9 / run["seconds"]),
    ("far", "50 ms, 1 Gbit/s, loss 1e-4, cubic", "1 GiB over a long link", "50 ms, 1 Gbit/s, 1 packet in 10,000 lost, GB/s",
     lambda run: payload(run) / 1e9 / run["seconds"]),
]

STYLE = """<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.quiet{fill:#656d76}.ours{font-weight:600}
.paper{fill:#fff}.bar{fill:#b1bac4}.bar.ours{fill:#0969da}.bar.limit{fill:none;stroke:#8c959f;stroke-dasharray:3 2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}
.paper{fill:#0d1117}.bar{fill:#57606a}.bar.ours{fill:#388bfd}.bar.limit{stroke:#8b949e}}
</style>"""


def payload(run):
    return run.get("arrived") or run["bytes"]


def rows(runs, link, measure):
    """Of each program its fastest variant: (rate, name, encrypted, verified), best first. Variants that ever failed are left out."""
    rates = {}
    for run in runs:
        if run.get("link") == link:
            rates.setdefault(run["peer"], []).append(None if run["fault"] else measure(run))
    medians = {peer: statistics.median(found) for peer, found in rates.items() if None not in found}
    found = []
    for name, peers, encrypted, verified in PROGRAMS:
        measured = [medians[peer] for peer in peers if peer in medians]
        if measured:
            found.append((max(measured), name, encrypted, verified))
    return sorted(found, reverse=True, key=lambda row: row[0])


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}"{f""" class="{kind}" """.rstrip() if kind else ""}>{html.escape(words)}</text>'


def marks(y, encrypted, verified):
    """What a program does for its time; what it does not do is quiet."""
    if encrypted is None:
        return []
    return [text(MARKS_X, y, "encrypted" if encrypted else "clear", "" if encrypted else "quiet"),
            text(VERIFIED_X, y, "verified" if verified else "not verified", "" if verified else "quiet")]


def row(y, most, rate, name, encrypted, verified):
    kind = "ours" if name.startswith("Carrack") else "limit" if encrypted is None else ""
    length = rate / most * BAR_WIDTH
    value = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.2f}" if rate >= 0.2 else f"{rate:.3f}"
    return [text(NAME_X, y, name, "ours" if kind == "ours" else ""), *marks(y, encrypted, verified),
            f'<rect x="{BAR_X}" y="{y - 12}" width="{length:.1f}" height="15" rx="2" class="bar {kind}"/>',
            text(f"{BAR_X + length + 6:.1f}", y, value)]


def footer(results, y):
    host = next(host for workload, (host, _) in results.items() if workload == PANELS[0][0])
    lines = ["Carrack encrypts and verifies unless it is told otherwise.",
             "verified: the receiver compared a digest of each file with the sender's.",
             "scp, rsync, tar over ssh: the faster of two ciphers. GridFTP, xrdcp: the best number of streams.",
             f"Medians, {host['date'][:10]}. Sender and receiver share the {host['cores']} processor cores of one machine."]
    return [text(NAME_X, y + 18 * index, line, "quiet") for index, line in enumerate(lines)]


def picture(results):
    """SVG of the panels whose workloads were measured; empty if the first one, whose host is named, was not."""
    if PANELS[0][0] not in results:
        return ""
    parts, y = [], 28
    for workload, link, title, unit, measure in PANELS:
        found = rows(results[workload][1], link, measure) if workload in results else []
        if not found:
            continue
        parts.append(f'<text x="{NAME_X}" y="{y}"><tspan class="title">{html.escape(title)}</tspan>'
                     f'<tspan dx="10" class="quiet">{html.escape(unit)}</tspan></text>')
        y += 24
        for each in found:
            parts += row(y, found[0][0], *each)
            y += ROW
        y += 20
    parts += footer(results, y)
    height = y + 66
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">{STYLE}\n'
            f'<rect width="100%" height="100%" class="paper"/>\n' + "\n".join(parts) + "\n</svg>\n")
