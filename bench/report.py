#!/usr/bin/env python3
"""Tables, a chart of all and the README's picture from raw.jsonl: `report.py [DIRECTORY]`.

Each workload is shown as the latest session measured it.
"""
import html
import json
import pathlib
import statistics
import sys

import picture


def spread(values, digits=2):
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def payload(run):
    return run.get("arrived") or run["bytes"]


def cpu(run):
    return run["user"] + run["system"]


def units(runs):
    """What a bar of the chart shows for one run, and its title: a rate, and a cost."""
    if runs[0]["bytes"] < 1e6:  # a rate would say nothing
        return (lambda run: run["seconds"], "seconds (less is better)"), (cpu, "CPU-s, both sides (less is better)")
    cost = (lambda run: cpu(run) / payload(run) * 1e9, "CPU-s/GB, both sides (less is better)")
    if runs[0]["files"] > 1 and runs[0]["bytes"] / runs[0]["files"] < 1e5:
        return (lambda run: run["files"] / run["seconds"], "files/s (more is better)"), cost
    return (lambda run: payload(run) / 1e9 / run["seconds"], "GB/s (more is better)"), cost


def groups(runs):
    """By link and peer, in the order in which they ran."""
    found = {}
    for run in runs:
        found.setdefault((run.get("link"), run["peer"]), []).append(run)
    # Interleaved runs: those over one link are brought together.
    links = list(dict.fromkeys(link for link, _ in found))
    return dict(sorted(found.items(), key=lambda item: links.index(item[0][0])))


def heading(workload, host, runs):
    shape = f"{runs[0]['files']:,} × {runs[0]['bytes'] // runs[0]['files']:,} bytes"
    size = f", {host['memory_bytes'] / (1 << 30):.0f} GiB" if host.get("memory_bytes") else ""
    control = f", {host['congestion_control']}" if host.get("congestion_control") else ""
    versions = "; ".join(version if name in version else f"{name} {version}" for name, version in host["versions"].items() if version)
    pushed = "; the agent pushed in each run" if host["push"] else ""
    return [
        f"## {workload}: {shape}", "",
        f"{host['date']}, {host['cpu']}, {host['cores']} cores{size}, Linux {host['kernel']}{control}, commit {host['commit']}; CPU time from "
        f"{host['cpu_time_from']}{pushed}; memcpy {spread([r['memcpy_gbs'] for r in runs], 1)} GB/s; median (min..max)", "",
        f"Versions: {versions}", ""]


def table(workload, host, runs):
    # Of these columns, those that say something here.
    far, cached = any(r.get("link") for r in runs), any("source_cached_percent" in r for r in runs)
    rated, tree = runs[0]["bytes"] >= 1e6, runs[0]["files"] > 1
    columns = ["link"] * far + ["peer", "runs"] + ["GB/s"] * rated + ["seconds"] + ["files/s"] * tree + ["CPU-s user+system"] + ["CPU-s/GB"] * rated
    columns += ["source cached %", "copy cached %"] * cached + ["steal %", "others %", "note"]
    rule = "|".join("---" if name in ("link", "peer", "note") else "--:" for name in columns)
    lines = [*heading(workload, host, runs), f"| {' | '.join(columns)} |", f"|{rule}|"]
    for (link, peer), mine in groups(runs).items():
        good = [r for r in mine if not r["fault"]]
        notes = [r["fault"] for r in mine if r["fault"]]
        notes += ["did not end by itself: " + ", ".join(r["lingering"]) for r in mine if r["lingering"]]
        cells = {"link": link, "peer": peer, "runs": f"{len(good)} of {len(mine)}",
                 "note": " ".join("; ".join(dict.fromkeys(notes)).replace("|", "\\|").split())}
        if good:
            cells.update(figures(good))
        lines.append(f"| {' | '.join(cells.get(name) or '' for name in columns)} |")
    return "\n".join(lines) + "\n" + beside(runs)


def figures(good):
    middle = lambda value: statistics.median(value(r) for r in good)
    found = {
        "GB/s": spread([payload(r) / 1e9 / r["seconds"] for r in good], 3), "seconds": spread([r["seconds"] for r in good], 3 if max(r["seconds"] for r in good) < 1 else 2),
        "files/s": f"{middle(lambda r: r['files'] / r['seconds']):,.0f}",
        "CPU-s user+system": f"{middle(lambda r: r['user']):.2f}+{middle(lambda r: r['system']):.2f}",
        "CPU-s/GB": spread([cpu(r) / payload(r) * 1e9 for r in good]), "steal %": f"{middle(lambda r: r['steal_percent']):.1f}",
        "others %": f"{middle(lambda r: r['others_percent']):.0f}"}
    for what in ("source", "copy"):
        values = [r[f"{what}_cached_percent"] for r in good if r.get(f"{what}_cached_percent") is not None]
        if values:
            found[f"{what} cached %"] = f"{statistics.median(values):.0f}"
    return found


def beside(runs):
    """How Carrack's runs compare with those of the binary given by --before: the medians' ratios, and how far the runs lie apart."""
    found, lines = groups(runs), []
    for (link, peer), mine in found.items():
        earlier = found.get((link, peer + "-before"))
        pair = [[r for r in several or () if not r["fault"]] for several in (mine, earlier)]
        if not all(pair):
            continue
        cells = [f"{link + ': ' if link else ''}{peer}"]
        for measure in (lambda r: r["seconds"], cpu):
            now, then = ([measure(r) for r in several] for several in pair)
            middle = statistics.median(then)
            # Half of what lies between the quartiles, of both: what chance alone moves a median by, roughly.
            apart = max((quartiles(values)[1] - quartiles(values)[0]) / 2 / middle for values in (now, then))
            cells += [f"{middle:.3g}", f"{statistics.median(now):.3g}", f"{statistics.median(now) / middle:.3f}", f"± {100 * apart:.0f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ""
    head = ["", "| peer | seconds before | after | ratio | spread | CPU-s before | after | ratio | spread |", "|---" + "|--:" * 8 + "|"]
    return "\n".join([*head, *lines]) + "\n"


def quartiles(values):
    """The lower and the upper one; of two or three values, the least and the most."""
    if len(values) < 4:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def chart(results):
    """Two bars for each peer of each workload; a thin line goes from the least to the most. A peer that failed has none."""
    parts, top, left, width = [], 40, 190, 260
    for workload, (_, runs) in results.items():
        found, pair, link = groups(runs), units(runs), None
        parts.append(f'<text x="10" y="{top}" class="b">{workload}</text>')
        parts += [f'<text x="{left + column * (width + 130)}" y="{top}" class="b">{pair[column][1]}</text>' for column in (0, 1)]
        y = top + 12
        for (where, peer), mine in found.items():
            if where != link:
                link = where
                parts.append(f'<text x="{left}" y="{y + 12}">{html.escape(link)}</text>')
                y += 20
            parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{html.escape(peer)}</text>')
            good = [r for r in mine if not r["fault"]]
            if len(good) < len(mine):
                parts.append(f'<text x="{left + 2 * width + 200}" y="{y + 12}">{len(mine) - len(good)} of {len(mine)} failed</text>')
            if good:
                parts += [bar([measure(r) for r in good], longest(found, measure), left + column * (width + 130), y, width, colour(peer))
                          for column, (measure, _) in enumerate(pair)]
            y += 20
        top = y + 38
    host = list(results.values())[-1][0]
    parts.append(f'<text x="10" y="{top}">{html.escape(host["cpu"])}, {host["cores"]} cores, commit {host["commit"]}, {host["date"]}</text>')
    style = "<style>text{font:12px sans-serif;fill:#222}.b{font-weight:bold}</style>"
    size = f'width="1000" height="{top + 20}" viewBox="0 0 1000 {top + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"


def longest(found, measure):
    """What the full width stands for. The floor copies nothing between processes; its bar is cut off where it would dwarf the others."""
    values = [(peer, measure(r)) for (_, peer), mine in found.items() for r in mine if not r["fault"]]
    return max((value for peer, value in values if peer != "cp"), default=max((value for _, value in values), default=1))


def colour(peer):
    return "#1f6feb" if peer.startswith("carrack") else "#9aa4b2"


def bar(values, most, x, y, width, fill):
    median = statistics.median(values)
    low, mid, high = (min(v / most, 1) * width for v in (min(values), median, max(values)))
    text = f"{median:,.0f}" if median >= 1000 else f"{median:.3g}"
    return (f'<rect x="{x}" y="{y}" width="{mid:.1f}" height="14" fill="{fill}"/>'
            f'<path d="M{x + low:.1f} {y + 7}H{x + high:.1f}" stroke="#222"/>'
            f'<text x="{x + high + 6:.1f}" y="{y + 12}">{text}{" (cut off)" if median > most else ""}</text>')


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
        (out / "all.svg").write_text(chart(results))
        if drawn := picture.picture(results):
            (out / "summary.svg").write_text(drawn)


if __name__ == "__main__":
    report(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "results"))
