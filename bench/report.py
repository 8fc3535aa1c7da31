#!/usr/bin/env python3
"""Tables and a chart from raw.jsonl: `report.py [DIRECTORY]`. Each workload is shown as the latest session measured it."""
import html
import json
import pathlib
import statistics
import sys


def spread(values, digits=2):
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def payload(run):
    return run.get("arrived") or run["bytes"]


def rates(runs):
    """By peer, in order: GB/s and CPU-s/GB of the runs that went well."""
    good = {}
    for run in runs:
        if not run["fault"]:
            gb = payload(run) / 1e9
            good.setdefault(run["peer"], []).append((gb / run["seconds"], (run["user"] + run["system"]) / gb))
    return {peer: tuple(zip(*pairs)) for peer, pairs in good.items()}


def table(workload, host, runs):
    kind = "tree" if runs[0]["files"] > 1 else "file"
    shape = f"{runs[0]['files']:,} × {runs[0]['bytes'] // runs[0]['files']:,} bytes"
    lines = [
        f"## {workload}: {shape}", "",
        f"{host['date']}, {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, {host['versions']['carrack']}, commit "
        f"{host['commit']}; CPU time from {host['cpu_time_from']}" + ("; the agent pushed in each run" if host["push"] else "") + "; memcpy "
        + spread([r["memcpy_gbs"] for r in runs], 1) + " GB/s; median (min..max)", "",
        "| peer | runs | GB/s | seconds | files/s | CPU-s user+system | CPU-s/GB | steal % | others % | note |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    for peer in dict.fromkeys(r["peer"] for r in runs):
        mine = [r for r in runs if r["peer"] == peer]
        good = [r for r in mine if not r["fault"]]
        notes = [r["fault"] for r in mine if r["fault"]]
        notes += ["did not end by itself: " + ", ".join(r["lingering"]) for r in mine if r["lingering"]]
        note = " ".join("; ".join(dict.fromkeys(notes)).replace("|", "\\|").split())
        if not good:
            lines.append(f"| {peer} | 0 of {len(mine)} | | | | | | | | {note} |")
            continue
        speed, cost = rates(good)[peer]
        files = f"{statistics.median(r['files'] / r['seconds'] for r in good):,.0f}" if kind == "tree" else ""
        user, system = (statistics.median(r[half] for r in good) for half in ("user", "system"))
        steal, others = (statistics.median(r[f"{what}_percent"] for r in good) for what in ("steal", "others"))
        lines.append(
            f"| {peer} | {len(good)} of {len(mine)} | {spread(speed, 3)} | {spread([r['seconds'] for r in good])} | {files} "
            f"| {user:.2f}+{system:.2f} | {spread(cost)} | {steal:.1f} | {others:.0f} | {note} |")
    return "\n".join(lines) + "\n"


def chart(results):
    """Two bars for each peer of each workload; a thin line goes from the least to the most."""
    parts, top, left, width = [], 40, 190, 260
    for workload, (_, runs) in results.items():
        by_peer = rates(runs)
        parts.append(f'<text x="10" y="{top}" class="b">{workload}</text>')
        for column, title in enumerate(("GB/s (more is better)", "CPU-s/GB, both sides (less is better)")):
            x0 = left + column * (width + 130)
            parts.append(f'<text x="{x0}" y="{top}" class="b">{title}</text>')
            # The floor copies nothing between processes; its bar is cut off where it would dwarf the others.
            most = max((max(values[column]) for peer, values in by_peer.items() if peer != "cp" or len(by_peer) == 1), default=1)
            for row, (peer, values) in enumerate(by_peer.items()):
                y, median = top + 12 + row * 20, statistics.median(values[column])
                low, mid, high = (min(v / most, 1) * width for v in (min(values[column]), median, max(values[column])))
                colour = "#1f6feb" if peer.startswith("carrack") else "#9aa4b2"
                if column == 0:
                    parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{html.escape(peer)}</text>')
                parts.append(f'<rect x="{x0}" y="{y}" width="{mid:.1f}" height="14" fill="{colour}"/>')
                parts.append(f'<path d="M{x0 + low:.1f} {y + 7}H{x0 + high:.1f}" stroke="#222"/>')
                parts.append(f'<text x="{x0 + max(high, mid) + 6:.1f}" y="{y + 12}">{median:.3g}{" (cut off)" if median > most else ""}</text>')
        top += 50 + 20 * len(by_peer)
    host = list(results.values())[-1][0]
    parts.append(f'<text x="10" y="{top}">{html.escape(host["cpu"])}, {host["cores"]} cores, commit {host["commit"]}, {host["date"]}</text>')
    style = "<style>text{font:12px sans-serif;fill:#222}.b{font-weight:bold}</style>"
    size = f'width="900" height="{top + 20}" viewBox="0 0 900 {top + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"


def report(out, workloads=None):
    """Writes all; prints the tables of `workloads`, or all."""
    hosts, latest = {}, {}
    for record in map(json.loads, (out / "raw.jsonl").read_text().splitlines()):
        if record["type"] == "session":
            hosts[record["session"]] = record
        else:
            latest.setdefault(record["workload"], {}).setdefault(record["session"], []).append(record)
    results = {}
    for workload, sessions in latest.items():
        name, runs = list(sessions.items())[-1]
        results[workload] = hosts[name], runs
        text = table(workload, *results[workload])
        (out / f"{workload}.md").write_text(text)
        if workloads is None or workload in workloads:
            print("\n" + text, end="")
    if results:
        (out / "summary.svg").write_text(chart(results))


if __name__ == "__main__":
    report(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "results"))
