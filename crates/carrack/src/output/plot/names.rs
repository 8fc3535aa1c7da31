//! Where the names of rows stand: before the picture, or above each row where that would leave too little of it.

use super::svg::{Svg, text_width};

/// Space between a name and the picture.
const GAP: f64 = 8.0;
/// Share of the width that names may take.
const SHARE: f64 = 0.35;
/// A name is so much larger than a number on an axis.
const LARGER: f64 = 1.13;
/// Height of a name above its row.
const ABOVE: f64 = 17.0;

/// The place of all names of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Where the picture begins.
    pub left: f64,
    /// Height that a name takes above its row.
    pub above: f64,
}

impl Names {
    /// Finds the place of these names in a drawing of this width.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>, width: f64) -> Self {
        let needed = widest(names) + GAP;
        if needed <= width * SHARE { Self { left: needed, above: 0.0 } } else { Self { left: 0.0, above: ABOVE } }
    }

    /// Writes the name of the row whose picture has its middle at `middle` and begins at `top`.
    pub fn draw(&self, svg: &mut Svg, name: &str, top: f64, middle: f64) {
        if self.above > 0.0 {
            svg.text("name", (0.0, top - 4.0), "start", name);
        } else {
            svg.text("name", (self.left - GAP, middle + 4.0), "end", name);
        }
    }
}

/// The width of the widest text, at most, in the size of names.
pub fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(|text| text_width(text) * LARGER).fold(0.0, f64::max)
}
