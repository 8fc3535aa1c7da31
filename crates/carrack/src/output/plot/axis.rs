//! Axes: what the unit is called, and where the round numbers are.

use std::time::Duration;

use crate::output::format;

/// What the values of a panel are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Numbers of something.
    #[default]
    Count,
    /// Numbers a second.
    PerSecond,
    /// Bytes a second; decimal, as networks and disks are sold.
    BytesPerSecond,
    /// Bytes, in powers of 1024.
    Bytes,
    /// Shares: 1 is 100 %.
    Share,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// What to divide values up to `most` by, and what they are called then.
    fn scaled(self, most: f64) -> (f64, &'static str) {
        let among = |units: &[(f64, &'static str)]| {
            let fits = units.iter().rev().find(|(factor, _)| most >= *factor);
            fits.or(units.first()).copied().unwrap_or((1.0, ""))
        };
        match self {
            Self::Count => (1.0, ""),
            Self::PerSecond => (1.0, "a second"),
            Self::Share => (0.01, "%"),
            Self::BytesPerSecond => among(&[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")]),
            Self::Bytes => {
                let kibi = 1024.0_f64;
                among(&[(1.0, "bytes"), (kibi, "KiB"), (kibi.powi(2), "MiB"), (kibi.powi(3), "GiB")])
            }
            Self::Seconds => among(&[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]),
        }
    }

    /// A value by itself, with its unit: `1.25 GB/s`, `37 %`.
    pub fn shown(self, value: f64) -> String {
        let (factor, name) = self.scaled(value.abs());
        let scaled = value / factor;
        let digits = match self {
            _ if scaled == 0.0 || scaled >= 99.95 => 0,
            Self::Share if scaled >= 9.95 => 0,
            Self::Share if scaled < 0.0995 => 3,
            Self::Count if scaled.fract() == 0.0 => 0,
            _ if scaled >= 9.95 => 1,
            _ => 2,
        };
        let number = if digits == 0 && scaled >= 1e3 { separated(scaled) } else { format!("{scaled:.digits$}") };
        if name.is_empty() { number } else { format!("{number} {name}") }
    }
}

fn separated(value: f64) -> String {
    format::count(value.round() as u64)
}

/// The axis of values, from 0 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The value at its end.
    pub top: f64,
    /// Values with a number, and that number. The first is 0.
    pub ticks: Vec<(f64, String)>,
    /// What the numbers are in.
    pub unit: &'static str,
}

impl Axis {
    /// An axis for values up to `most`, with about so many numbers above 0.
    pub fn new(unit: Unit, most: f64, about: u32) -> Self {
        let most = if most.is_finite() { most.max(0.0) } else { 0.0 };
        let (factor, name) = unit.scaled(most);
        let scaled = most / factor;
        let mut step = round_step(scaled / f64::from(about.max(1)));
        if unit == Unit::Count {
            step = step.max(1.0).round();
        }
        // What is 0 all the time lies on the ground.
        let steps = if scaled > 0.0 { (scaled / step - 1e-9).ceil().max(1.0) } else { 1.0 };
        let digits = if step < 1.0 { (-step.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
        let number = |value: f64| match value {
            // More digits than anybody reads.
            _ if steps * step >= 1e7 => format!("{value:.1e}"),
            _ if value >= 1e3 => separated(value),
            _ => format!("{value:.digits$}"),
        };
        let ticks = (0..=steps as u32).map(|at| {
            let value = f64::from(at) * step;
            (value * factor, if at == 0 { "0".to_owned() } else { number(value) })
        });
        Self { top: steps * step * factor, ticks: ticks.collect(), unit: name }
    }
}

/// The next of 1, 2, 5, 10, 20 … from a step on.
fn round_step(step: f64) -> f64 {
    if step.is_nan() || step <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(step.log10().floor());
    let among = [1.0, 2.0, 5.0, 10.0];
    among.iter().map(|factor| factor * power).find(|round| *round >= step * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// The axis of time, from 0 on, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeAxis {
    /// Where it ends.
    pub end: f64,
    /// Moments with a label, and the label.
    pub ticks: Vec<(f64, String)>,
}

/// What moments with a label may be apart, in seconds.
const TIME_STEPS: &[f64] = &[
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    1_209_600.0,
];

impl TimeAxis {
    /// An axis up to `end`, with at most so many labels.
    pub fn new(end: f64, most: u32) -> Self {
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        let wanted = end / f64::from(most.max(1));
        let step = TIME_STEPS.iter().copied().find(|step| *step >= wanted);
        let step = step.unwrap_or_else(|| round_step(wanted / 86_400.0) * 86_400.0);
        let count = (end / step + 1e-9).floor() as u32;
        let ticks = (0..=count).map(|at| f64::from(at) * step).map(|at| (at, time(at, step, end)));
        Self { end, ticks: ticks.collect() }
    }
}

/// A moment, as long as its axis asks for.
fn time(at: f64, step: f64, end: f64) -> String {
    match at {
        0.0 => "0".to_owned(),
        _ if step < 1.0 => format!("{at:.1} s"),
        _ if end <= 120.0 => format!("{at:.0} s"),
        _ if step >= 86_400.0 => format!("{:.0} d", at / 86_400.0),
        _ if end >= 172_800.0 => format!("{:.0} d {:.0} h", (at / 86_400.0).floor(), (at % 86_400.0) / 3600.0),
        _ if step >= 3600.0 => format!("{:.0} h", at / 3600.0),
        _ if step >= 60.0 && end < 3600.0 => format!("{:.0} min", at / 60.0),
        _ => moment(at),
    }
}

/// A moment by itself: `0:07`, `12:34`, `1:02:03`.
pub fn moment(at: f64) -> String {
    format::clock(Duration::try_from_secs_f64(at.max(0.0).round()).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_has_round_numbers_up_to_the_largest_value() {
        let cases: &[(Unit, f64, f64, &str, &[&str])] = &[
            (Unit::BytesPerSecond, 2.14e8, 2.5e8, "MB/s", &["0", "50", "100", "150", "200", "250"]),
            (Unit::BytesPerSecond, 1.25e9, 1.5e9, "GB/s", &["0", "0.5", "1.0", "1.5"]),
            (Unit::BytesPerSecond, 999.0, 1000.0, "B/s", &["0", "200", "400", "600", "800", "1,000"]),
            (Unit::Share, 1.0, 1.0, "%", &["0", "20", "40", "60", "80", "100"]),
            (Unit::Count, 3.0, 3.0, "", &["0", "1", "2", "3"]),
            (Unit::Count, 0.0, 1.0, "", &["0", "1"]),
            (Unit::PerSecond, 0.3, 0.3, "a second", &["0", "0.1", "0.2", "0.3"]),
            (Unit::Seconds, 0.08, 0.08, "ms", &["0", "20", "40", "60", "80"]),
            (Unit::Bytes, 3.1e6, 3.0 * 1_048_576.0, "MiB", &["0", "1", "2", "3"]),
            (Unit::BytesPerSecond, f64::NAN, 1.0, "B/s", &["0", "1"]),
        ];
        for (unit, most, top, name, labels) in cases {
            let axis = Axis::new(*unit, *most, 5);
            let shown: Vec<&str> = axis.ticks.iter().map(|(_, label)| &label[..]).collect();
            assert_eq!((axis.unit, &shown[..]), (*name, *labels), "{unit:?} {most}");
            assert!((axis.top - top).abs() <= top * 1e-9, "{unit:?} {most}: {}", axis.top);
        }
    }

    #[test]
    fn axes_of_any_size_are_bounded_and_hold_the_value() {
        for unit in [Unit::Count, Unit::PerSecond, Unit::BytesPerSecond, Unit::Bytes, Unit::Share, Unit::Seconds] {
            for power in -8..20 {
                for factor in [1.0, 1.01, 1.99, 2.0, 4.9, 7.0] {
                    let most = factor * 10_f64.powi(power);
                    let axis = Axis::new(unit, most, 4);
                    assert!(axis.top >= most * (1.0 - 1e-6), "{unit:?} {most}: {axis:?}");
                    assert!((2..=6).contains(&axis.ticks.len()), "{unit:?} {most}: {axis:?}");
                    let mut labels: Vec<&String> = axis.ticks.iter().map(|(_, label)| label).collect();
                    labels.dedup();
                    assert_eq!(labels.len(), axis.ticks.len(), "{axis:?}");
                }
            }
        }
        for power in -6..12 {
            let axis = TimeAxis::new(3.7 * 10_f64.powi(power), 10);
            assert!((1..=11).contains(&axis.ticks.len()), "{axis:?}");
        }
        assert_eq!(TimeAxis::new(f64::NAN, 10).end.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn times_are_as_long_as_their_axis_asks_for() {
        let last = |end, most| TimeAxis::new(end, most).ticks.pop().map(|(_, label)| label);
        let cases = [
            (0.9, 5, "0.8 s"),
            (62.0, 7, "60 s"),
            (1800.0, 10, "30 min"),
            (5400.0, 10, "1:30:00"),
            (40_000.0, 10, "10 h"),
            (604_800.0, 7, "7 d"),
            (259_200.0, 8, "3 d 0 h"),
        ];
        for (end, most, label) in cases {
            assert_eq!(last(end, most).as_deref(), Some(label), "{end}");
        }
    }

    #[test]
    fn values_by_themselves_have_their_unit() {
        let cases = [
            (Unit::BytesPerSecond, 1.384e8, "138 MB/s"),
            (Unit::BytesPerSecond, 1.2e9, "1.20 GB/s"),
            (Unit::Share, 0.374, "37 %"),
            (Unit::Share, 0.0, "0 %"),
            (Unit::Share, 0.000_041, "0.004 %"),
            (Unit::Seconds, 0.0801, "80.1 ms"),
            (Unit::Count, 12_345.0, "12,345"),
            (Unit::Count, 8.0, "8"),
            (Unit::PerSecond, 0.25, "0.25 a second"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.shown(value), text);
        }
    }
}
