//! A heat map: a grid of values, each in a colour between those of the least and of the most.

use super::svg::{Svg, text_width};

/// A grid of values with the names of its columns and rows.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The name of each row, and a cell or none for each column.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

/// One value.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Decides the colour, by its logarithm.
    pub value: f64,
    /// What stands in it.
    pub text: String,
    /// What a pointer that rests on it is shown.
    pub title: String,
    /// Hatched: the number is not what it seems to be.
    pub hatched: bool,
}

const LEFT: f64 = 42.0;
const HEAD: f64 = 34.0;
const ROW: f64 = 28.0;
/// A narrower cell has no room for its number: the picture is wider than the page then, and moves under the finger.
const CELL_LEAST: f64 = 52.0;
const CELL_MOST: f64 = 110.0;

/// Draws the grid. `label` says what it shows to who cannot see it.
pub fn heat(map: &Heat, label: &str, width: f64) -> String {
    let count = map.columns.len().max(1) as f64;
    let cell = ((width - LEFT) / count).clamp(CELL_LEAST, CELL_MOST);
    let height = HEAD + map.rows.len() as f64 * ROW;
    // As wide as the rest of the page, so that all texts are of one size.
    let mut svg = Svg::natural(width.max(LEFT + cell * count), height, label);
    for (at, name) in map.columns.iter().enumerate() {
        let middle = LEFT + (at as f64 + 0.5) * cell;
        match name.split_once('-').filter(|_| text_width(name) > cell) {
            Some((first, rest)) => {
                svg.text("tick", (middle, 12.0), "middle", first);
                svg.text("tick", (middle, 26.0), "middle", rest);
            }
            None => svg.text("tick", (middle, 26.0), "middle", name),
        }
    }
    let scale = Scale::of(map);
    for (row, (name, cells)) in map.rows.iter().enumerate() {
        let top = HEAD + row as f64 * ROW;
        svg.text("tick", (LEFT - 8.0, top + 18.0), "end", name);
        for (column, one) in cells.iter().enumerate() {
            let Some(one) = one else { continue };
            let place = (LEFT + column as f64 * cell, top);
            let (colour, ink) = colour(scale.share(one.value));
            let size = (cell - 2.0, ROW - 2.0);
            svg.block(&colour, place, size, &one.title);
            if one.hatched {
                svg.rect("veil", place, size, &one.title);
            }
            svg.text(ink, (place.0 + size.0 / 2.0, top + 17.5), "middle", &one.text);
        }
    }
    svg.finish()
}

/// The logarithms of the least and the most value.
#[derive(Clone, Copy, Debug)]
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(map: &Heat) -> Self {
        let all = || map.rows.iter().flat_map(|(_, cells)| cells.iter().flatten()).map(|cell| logarithm(cell.value));
        Self { least: all().fold(f64::MAX, f64::min), most: all().fold(f64::MIN, f64::max) }
    }

    /// Where a value is between the two, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        if self.most > self.least { (logarithm(value) - self.least) / (self.most - self.least) } else { 0.5 }
    }
}

fn logarithm(value: f64) -> f64 {
    if value.is_finite() { value.max(1.0).ln() } else { 0.0 }
}

/// From dark blue over green to yellow, which the colour-blind tell apart as well, and the class of a text on it.
fn colour(share: f64) -> (String, &'static str) {
    const STOPS: [(f64, f64, f64); 5] =
        [(68.0, 1.0, 84.0), (59.0, 82.0, 139.0), (33.0, 145.0, 140.0), (94.0, 201.0, 98.0), (253.0, 231.0, 37.0)];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place as usize).min(STOPS.len() - 2);
    let (from, to, part) = (STOPS[index], STOPS[index + 1], place - index as f64);
    let mix = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
    let ink = if share > 0.55 { "cell on-bright" } else { "cell" };
    (format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2)), ink)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: &[f64]) -> Heat {
        let cell = |value: &f64| {
            Some(Cell { value: *value, text: format!("{value}"), title: "<t>".to_owned(), hatched: *value > 5.0 })
        };
        let columns = values.iter().map(|_| "random-write".to_owned()).collect();
        Heat { columns, rows: vec![("4K".to_owned(), values.iter().map(cell).collect())] }
    }

    #[test]
    fn colours_go_from_dark_to_bright() {
        assert_eq!(
            (colour(0.0), colour(1.0)),
            (("#440154".to_owned(), "cell"), ("#fde725".to_owned(), "cell on-bright"))
        );
        assert_eq!(colour(f64::NAN).0.len(), 7);
    }

    #[test]
    fn map_has_a_cell_for_each_value() {
        let drawn = heat(&map(&[1.0, 10.0, 100.0]), "rates", 640.0);
        assert_eq!((drawn.matches("fill=\"#").count(), drawn.matches("class=\"veil\"").count()), (3, 2));
        assert!(drawn.contains("#440154") && drawn.contains("#fde725") && !drawn.contains("<t>"), "{drawn}");
        for values in [&[][..], &[f64::NAN], &[5.0]] {
            let drawn = heat(&map(values), "rates", 350.0);
            assert!(
                drawn.ends_with("</svg>") && !drawn.contains("class=\"NaN") && !drawn.contains("=\"inf"),
                "{drawn}"
            );
        }
    }

    #[test]
    fn many_columns_are_wider_than_a_narrow_page() {
        let drawn = heat(&map(&[1.0; 11]), "rates", 350.0);
        assert!(drawn.contains("min-width:614px"), "{drawn:.200}");
        assert!(!heat(&map(&[1.0; 3]), "rates", 350.0).contains("min-width:614px"));
    }
}
