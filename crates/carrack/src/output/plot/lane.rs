//! Where the labels of marks go, so that none lies over another.

/// A label in its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Which mark, from 0 on.
    pub mark: usize,
    /// From 0 on, the first being the one next to the picture.
    pub row: usize,
    /// Where it begins.
    pub left: f64,
    /// What it says.
    pub text: String,
}

/// Places labels beside each other in at most `rows` rows. Each mark is where it is, how it is labelled, and what
/// stands for it where that has no room. A mark without any room has no label.
///
/// `size` is how wide a text is.
pub fn place(marks: &[(f64, String, String)], width: f64, rows: usize, size: impl Fn(&str) -> f64) -> Vec<Placed> {
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); rows];
    let mut placed = Vec::new();
    // Short ones first would be fairer, but who reads from left to right expects the first ones to be there.
    for (mark, (at, long, short)) in marks.iter().enumerate() {
        for text in [long, short] {
            let needed = size(text);
            let left = at.min(width - needed).max(0.0);
            let right = left + needed;
            let is_free = |row: &Vec<(f64, f64)>| row.iter().all(|(from, to)| right <= *from || left >= *to);
            if needed <= width
                && let Some(row) = taken.iter().position(is_free)
            {
                taken[row].push((left, right));
                placed.push(Placed { mark, row, left, text: text.clone() });
                break;
            }
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_overlap_and_stay_inside() {
        let size = |text: &str| 7.0 * text.chars().count() as f64 + 6.0;
        for count in [1, 3, 10, 200] {
            let marks: Vec<(f64, String, String)> = (0..count)
                .map(|at| (f64::from(at * at % 97) * 7.0, format!("{at} streams 4 to 8"), at.to_string()))
                .collect();
            let placed = place(&marks, 700.0, 4, size);
            assert!(placed.len() >= marks.len().min(8), "{} of {}", placed.len(), marks.len());
            for (at, one) in placed.iter().enumerate() {
                assert!(one.left >= 0.0 && one.left + size(&one.text) <= 700.0 && one.row < 4);
                for other in placed[at + 1..].iter().filter(|other| other.row == one.row) {
                    let apart = one.left + size(&one.text) <= other.left || other.left + size(&other.text) <= one.left;
                    assert!(apart, "{one:?} lies over {other:?}");
                }
            }
        }
        assert!(place(&[(0.0, "x".repeat(500), "y".repeat(500))], 100.0, 4, size).is_empty());
    }
}
