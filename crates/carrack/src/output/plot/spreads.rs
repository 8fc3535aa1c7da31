//! How single values spread: their median, their 95th and 99th percentile and the longest, on one logarithmic axis.

use super::names::Names;
use super::svg::Svg;

/// The times of one kind of operation.
#[derive(Clone, Debug)]
pub struct Spread {
    /// What stands before it.
    pub name: String,
    /// Median, 95th and 99th percentile and longest, in seconds.
    pub seconds: [f64; 4],
}

const BAR: f64 = 12.0;
const FREE: f64 = 10.0;
/// Height of the numbers above the picture.
const HEAD: f64 = 20.0;
/// Free at the right for half a number and for the dot of the longest.
const RIGHT: f64 = 22.0;
/// Shorter times than this are drawn as this.
const LEAST: f64 = 1e-9;

/// Draws spreads under each other: a bar from the median to the 99th percentile with a line at the 95th, and a line on
/// to a dot at the longest. `label` says what they show to who cannot see them.
pub fn spreads(spreads: &[Spread], label: &str, width: f64) -> String {
    let names = Names::new(spreads.iter().map(|spread| spread.name.as_str()), width);
    let left = names.left.max(RIGHT);
    let all = || spreads.iter().flat_map(|spread| spread.seconds).filter(|time| time.is_finite());
    let power = |time: f64| time.max(LEAST).log10();
    let from = all().map(power).fold(f64::MAX, f64::min).floor();
    let to = all().map(power).fold(f64::MIN, f64::max).ceil().max(from + 1.0);
    let row = names.above + BAR + FREE;
    let bottom = HEAD + spreads.len() as f64 * row;
    let mut svg = Svg::new(width, bottom + 4.0, label);
    if all().next().is_none() {
        return svg.finish();
    }
    let x = |time: f64| left + (power(time) - from) / (to - from) * (width - left - RIGHT);
    for power in from as i32..=to as i32 {
        let at = x(10_f64.powi(power));
        svg.line("grid", (at, HEAD), (at, bottom));
        svg.text("tick", (at, 12.0), "middle", &decade(power));
    }
    for (at, spread) in spreads.iter().enumerate() {
        let top = HEAD + at as f64 * row + names.above + FREE / 2.0;
        let middle = top + BAR / 2.0;
        let [p50, p95, p99, longest] = spread.seconds.map(|time| if time.is_finite() { x(time) } else { left });
        names.draw(&mut svg, &spread.name, top, middle);
        svg.line("whisker", (p50, middle), (longest, middle));
        svg.rect("band t1", (p50, top), ((p99 - p50).max(2.0), BAR), &spread.name);
        svg.line("notch", (p95, top), (p95, top + BAR));
        svg.rect("dot", (longest - 3.0, middle - 3.0), (6.0, 6.0), "");
    }
    svg.finish()
}

/// A power of ten of a second, with its unit: `10 µs`.
fn decade(power: i32) -> String {
    let (unit, name) = match power {
        ..=-7 => (-9, "ns"),
        -6..=-4 => (-6, "µs"),
        -3..=-1 => (-3, "ms"),
        _ => (0, "s"),
    };
    let number = 10_u64.checked_pow(u32::try_from(power - unit).unwrap_or(0)).unwrap_or(u64::MAX);
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_of_times_has_a_number_for_each_power_of_ten() {
        assert_eq!(
            [-9, -7, -6, -4, -3, 0, 2].map(decade),
            ["1 ns", "100 ns", "1 µs", "100 µs", "1 ms", "1 s", "100 s"]
        );
        let spread = Spread { name: "read".to_owned(), seconds: [3e-6, 9e-6, 4e-5, 0.02] };
        let drawn = spreads(&[spread], "times", 640.0);
        for label in ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"] {
            assert!(drawn.contains(&format!(">{label}<")), "{label}: {drawn}");
        }
    }

    #[test]
    fn spreads_of_any_times_are_drawn() {
        for seconds in [[0.0; 4], [f64::NAN; 4], [1e-3; 4], [0.0, 1e-12, 1e9, f64::INFINITY]] {
            let drawn = spreads(&[Spread { name: String::new(), seconds }], "times", 350.0);
            assert!(drawn.ends_with("</svg>") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
        assert!(spreads(&[], "nothing", 350.0).ends_with("</svg>"));
    }
}
