//! Results of measurements: kept in files, shown to people and written for other programs. What is measured, and how,
//! is `carrack_measure`'s.

pub mod bonnie;
pub mod csv;
pub mod diff;
pub mod document;
pub mod fio;
pub mod html;
pub mod kept;
pub mod numbers;
pub mod svg;
pub mod table;
