//! Horizontal bars: single values under each other, each with its name and its number.

use super::names::{Names, widest};
use super::svg::Svg;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What stands before it.
    pub name: String,
    /// Its length, in the unit of all bars.
    pub value: f64,
    /// What stands behind it.
    pub text: String,
    /// Hatched instead of filled: the number is not what it seems to be.
    pub hatched: bool,
}

/// Height of a bar, and of what is free below it.
const BAR: f64 = 16.0;
const FREE: f64 = 8.0;
const GAP: f64 = 8.0;
/// The longest bar is at least this share of the width, whatever stands behind it.
const LEAST: f64 = 0.2;

/// Draws bars from 0 to the largest. `label` says what they show to who cannot see them.
pub fn bars(bars: &[Bar], label: &str, width: f64) -> String {
    let names = Names::new(bars.iter().map(|bar| bar.name.as_str()), width);
    let most = bars.iter().map(|bar| bar.value).filter(|value| value.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    let share = |bar: &Bar| if bar.value.is_finite() { (bar.value / most).clamp(0.0, 1.0) } else { 0.0 };
    // The longest bar is as long as lets every bar have its text behind it.
    let room_of = |bar: &Bar| (width - names.left - GAP - widest(std::iter::once(bar.text.as_str()))) / share(bar);
    let room = bars.iter().map(room_of).fold(width - names.left, f64::min).max(width * LEAST);
    let row = names.above + BAR + FREE;
    let mut svg = Svg::new(width, bars.len() as f64 * row + 2.0, label);
    for (at, bar) in bars.iter().enumerate() {
        let top = at as f64 * row + names.above + 2.0;
        let length = (share(bar) * room).max(1.0);
        names.draw(&mut svg, &bar.name, top, top + BAR / 2.0);
        let class = if bar.hatched { "band t1 hatched" } else { "band t1" };
        svg.rect(class, (names.left, top), (length, BAR), &format!("{}: {}", bar.name, bar.text));
        svg.text("name", (names.left + length + GAP, top + BAR / 2.0 + 4.0), "start", &bar.text);
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values_and_names_are_text() {
        let bar =
            |name: &str, value| Bar { name: name.to_owned(), value, text: "<5>".to_owned(), hatched: value < 2.0 };
        let drawn = bars(&[bar("a", 4.0), bar("<script>\"&", 1.0), bar("none", f64::NAN)], "rates", 640.0);
        let lengths: Vec<f64> = drawn
            .split("<rect ")
            .skip(1)
            .map(|rect| rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!((lengths[0] / lengths[1] - 4.0).abs() < 0.01 && lengths[2] <= 1.0, "{lengths:?}");
        assert!(drawn.contains("&lt;script&gt;&quot;&amp;") && !drawn.contains("<script") && !drawn.contains("NaN"));
        assert_eq!(drawn.matches("hatched").count(), 1);
        assert!(bars(&[], "nothing", 350.0).ends_with("</svg>"));
    }

    #[test]
    fn bars_and_their_texts_stay_inside() {
        for width in [350.0, 640.0, 1060.0] {
            let bar = Bar {
                name: "random-write direct 4K 4x16 at a rate".to_owned(),
                value: 1.0,
                text: "1.62 GB/s  partly-cached".to_owned(),
                hatched: false,
            };
            let drawn = bars(&[bar], "rates", width);
            let x: f64 = drawn.rsplit("x=\"").next().unwrap().split('"').next().unwrap().parse().unwrap();
            assert!(x + 24.0 * 6.6 <= width + 1.0, "{width}: {x}");
        }
    }
}
