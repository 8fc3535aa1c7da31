//! What a sync decides, from what both sides say they have. Pure: nothing here touches a file.

pub mod change;
pub mod check;
pub mod compare;
