"""Two programs in turn, old and new, and the table of their pairs."""
import statistics


def table(what, rows, pairs, most, run):
    """Prints a row for each of `rows`; whether the median of a ratio, new by old, is above `most`, of CPU time and of time.

    `run(row, which)` runs the old program (0) or the new one (1) once, and gives CPU seconds and seconds. The order
    changes from pair to pair; a first pair does not count.
    """
    print(f"| {what} | CPU s, old | new | ratio of pairs, median (least to most) | time s, old | new | ratio |")
    print("|---|--:|--:|---|--:|--:|---|", flush=True)
    slower = False
    for row in rows:
        told = []
        for number in range(pairs + 1):
            order = [0, 1] if number % 2 == 0 else [1, 0]
            told.append({which: run(row, which) for which in order})
        cells = []
        for at in (0, 1):
            old, new = ([pair[which][at] for pair in told[1:]] for which in (0, 1))
            ratios = sorted(one / other for one, other in zip(new, old))
            median = statistics.median(ratios)
            slower = slower or median > most[at]
            cells += [f"{statistics.median(old):.2f}", f"{statistics.median(new):.2f}",
                      f"{median:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"]
        print(f"| {row} | " + " | ".join(cells) + " |", flush=True)
    return slower
