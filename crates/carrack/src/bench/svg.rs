//! Plots as SVG that stands in a page: colours come from the page's style, so that they suit light and dark.

use std::fmt::Write;

/// Text as it may stand in HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // What drives a terminal or turns the direction of text has no business in a page either.
            control if carrack_core::path::drives_terminal(control) => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// One bar: its name, what it is worth, how that is written, and whether it is hatched as not to be believed.
pub struct ChartBar {
    /// What stands before it.
    pub name: String,
    /// Its length.
    pub amount: f64,
    /// What stands behind it.
    pub text: String,
    /// The number says nothing about what is measured.
    pub hatched: bool,
}

/// Horizontal bars.
pub fn bars(bars: &[ChartBar]) -> String {
    const ROW: usize = 24;
    const NAMES: f64 = 250.0;
    const ROOM: f64 = 380.0;
    let most = bars.iter().map(|bar| bar.amount).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = open(860, bars.len() * ROW + 8);
    for (index, bar) in bars.iter().enumerate() {
        let (y, length) = (index * ROW + 4, (bar.amount / most * ROOM).max(1.0));
        let class = if bar.hatched { "bar hatched" } else { "bar" };
        let _ = write!(
            svg,
            r#"<text x="{:.0}" y="{}" class="name">{}</text><rect x="{NAMES}" y="{y}" width="{length:.1}" height="16" rx="2" class="{class}"/><text x="{:.1}" y="{}">{}</text>"#,
            NAMES - 8.0,
            y + 13,
            escape(&bar.name),
            NAMES + length + 8.0,
            y + 13,
            escape(&bar.text),
        );
    }
    svg + "</svg>"
}

/// A cell of a heat map.
pub struct Cell {
    /// Decides its colour.
    pub amount: f64,
    /// What stands in it.
    pub text: String,
    /// What a pointer is shown.
    pub title: String,
    /// The number says nothing about what is measured.
    pub hatched: bool,
}

/// A heat map: the names of its columns, and its rows with their names. The colour is the amount's place between the
/// least and the most, by their logarithms.
pub fn heat_map(columns: &[String], rows: &[(String, Vec<Option<Cell>>)]) -> String {
    const W: usize = 84;
    const H: usize = 30;
    const LEFT: usize = 56;
    const TOP: usize = 28;
    let amounts = || rows.iter().flat_map(|(_, cells)| cells.iter().flatten()).map(|cell| cell.amount.max(1.0).ln());
    let (least, most) = (amounts().fold(f64::MAX, f64::min), amounts().fold(f64::MIN, f64::max));
    let mut svg = open(LEFT + columns.len() * W + 4, TOP + rows.len() * H + 4);
    for (index, name) in columns.iter().enumerate() {
        let _ = write!(svg, r#"<text x="{}" y="18" class="head">{}</text>"#, LEFT + index * W + W / 2, escape(name));
    }
    for (row, (name, cells)) in rows.iter().enumerate() {
        let y = TOP + row * H;
        let _ = write!(svg, r#"<text x="{}" y="{}" class="name">{}</text>"#, LEFT - 8, y + 20, escape(name));
        for (column, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let share = if most > least { (cell.amount.max(1.0).ln() - least) / (most - least) } else { 0.5 };
            let x = LEFT + column * W;
            let (colour, ink) = colour(share);
            let _ = write!(
                svg,
                r#"<g><title>{}</title><rect x="{x}" y="{y}" width="{}" height="{}" fill="{colour}"/>"#,
                escape(&cell.title),
                W - 2,
                H - 2
            );
            if cell.hatched {
                let _ = write!(svg, r#"<rect x="{x}" y="{y}" width="{}" height="{}" class="hatch"/>"#, W - 2, H - 2);
            }
            let _ = write!(
                svg,
                r#"<text x="{}" y="{}" class="cell" style="fill:{ink}">{}</text></g>"#,
                x + W / 2 - 1,
                y + 19,
                escape(&cell.text)
            );
        }
    }
    svg + "</svg>"
}

/// From dark blue over green to yellow, which the colour-blind tell apart as well, and the colour of text on it.
fn colour(share: f64) -> (String, &'static str) {
    const STOPS: [(f64, f64, f64); 5] =
        [(68.0, 1.0, 84.0), (59.0, 82.0, 139.0), (33.0, 145.0, 140.0), (94.0, 201.0, 98.0), (253.0, 231.0, 37.0)];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place as usize).min(STOPS.len() - 2);
    let (from, to, part) = (STOPS[index], STOPS[index + 1], place - index as f64);
    let mix = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
    let ink = if share > 0.55 { "#111" } else { "#fff" };
    (format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2)), ink)
}

/// A range of times on a logarithmic axis: a name, then the median, the 95th and 99th percentile and the longest, in
/// nanoseconds.
pub struct Range {
    /// What stands before it.
    pub name: String,
    /// p50, p95, p99, longest.
    pub nanos: [f64; 4],
}

/// Ranges of times under each other, on one axis.
pub fn ranges(ranges: &[Range]) -> String {
    const ROW: usize = 26;
    const LEFT: f64 = 250.0;
    const WIDE: f64 = 560.0;
    const TOP: usize = 24;
    let all = || ranges.iter().flat_map(|range| range.nanos).filter(|nanos| *nanos > 0.0).map(f64::log10);
    let (from, to) = (all().fold(f64::MAX, f64::min).floor(), all().fold(f64::MIN, f64::max).ceil());
    let height = TOP + ranges.len() * ROW + 6;
    let mut svg = open(860, height);
    if from >= to {
        return svg + "</svg>";
    }
    let x = |nanos: f64| LEFT + (nanos.max(1.0).log10() - from) / (to - from) * WIDE;
    for power in from as i32..=to as i32 {
        let nanos = 10f64.powi(power);
        let at = x(nanos);
        let text = super::numbers::time(std::time::Duration::from_nanos(nanos as u64));
        let text = text.replace(".00", "").replace(".0", "");
        let _ = write!(
            svg,
            r#"<line x1="{at:.1}" y1="{TOP}" x2="{at:.1}" y2="{height}" class="grid"/><text x="{at:.1}" y="16" class="head">{text}</text>"#
        );
    }
    for (index, range) in ranges.iter().enumerate() {
        let y = TOP + index * ROW + ROW / 2;
        let [p50, p95, p99, longest] = range.nanos.map(x);
        let _ = write!(
            svg,
            r#"<text x="{:.0}" y="{}" class="name">{}</text><line x1="{p50:.1}" y1="{y}" x2="{longest:.1}" y2="{y}" class="whisker"/><rect x="{p50:.1}" y="{}" width="{:.1}" height="10" rx="2" class="bar"/><line x1="{p95:.1}" y1="{}" x2="{p95:.1}" y2="{}" class="mark"/><circle cx="{longest:.1}" cy="{y}" r="3.5" class="dot"/>"#,
            LEFT - 8.0,
            y + 4,
            escape(&range.name),
            y - 5,
            (p99 - p50).max(2.0),
            y - 5,
            y + 5,
        );
    }
    svg + "</svg>"
}

/// Amounts over time, from zero to the largest.
pub fn line(amounts: &[f64]) -> String {
    const WIDE: f64 = 260.0;
    const HIGH: f64 = 44.0;
    let most = amounts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let step = WIDE / amounts.len().saturating_sub(1).max(1) as f64;
    let mut path = String::new();
    for (index, amount) in amounts.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", index as f64 * step, HIGH - amount / most * (HIGH - 4.0));
    }
    format!(
        r#"<svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" role="img"><path d="{path}L{WIDE} {HIGH}L0 {HIGH}Z" class="area"/><path d="{path}" class="line"/></svg>"#
    )
}

fn open(wide: usize, high: usize) -> String {
    format!(r#"<svg viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let bar = ChartBar { name: "<script>\"&".to_owned(), amount: 1.0, text: "\u{1b}[2J".to_owned(), hatched: true };
        let svg = bars(&[bar]);
        assert!(svg.contains("&lt;script&gt;&quot;&amp;") && !svg.contains("<script") && !svg.contains('\u{1b}'));
    }

    #[test]
    fn plots_of_nothing_are_plots() {
        for svg in [bars(&[]), heat_map(&[], &[]), ranges(&[]), line(&[]), line(&[0.0])] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn colours_go_from_dark_to_bright() {
        assert_eq!((colour(0.0), colour(1.0)), (("#440154".to_owned(), "#fff"), ("#fde725".to_owned(), "#111")));
        assert_eq!(colour(f64::NAN).0.len(), 7);
    }
}
