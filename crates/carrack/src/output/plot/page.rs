//! A page that stands by itself: no script, nothing loaded from anywhere, light or dark as the reader's system is.

use std::fmt::Write;

use super::axis::Axis;
use super::html::{escape, name};
use super::svg::{self, Size, swatch};
use super::{Mark, Panel};

/// Nothing may be loaded or run; styles stand in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("page.css");
/// Patterns that hatched bands are filled with. A drawing refers to them by the style sheet.
const PATTERNS: &[&str] = &["t0", "t1", "t2", "t3", "t4", "t5"];

/// Widths that each panel is drawn in: for a phone, half a screen and a screen. The style sheet shows one.
const WIDTHS: [(&str, f64); 3] = [("narrow", 350.0), ("middle", 640.0), ("wide", 1060.0)];

/// A page that is being written.
pub struct Page {
    out: String,
}

impl Page {
    /// Begins a page.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        let mut out = String::new();
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        );
        out.push_str("<svg class=\"patterns\" aria-hidden=\"true\"><defs>");
        for tone in PATTERNS {
            let _ = write!(
                out,
                "<pattern id=\"hatch-{tone}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate(45)\"><rect class=\"{tone} under\" width=\"5\" height=\"5\"/>\
                 <rect class=\"{tone} over\" width=\"2\" height=\"5\"/></pattern>"
            );
        }
        // Over colours that are not the page's own.
        out.push_str(
            "<pattern id=\"hatch-veil\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect class=\"stripe\" width=\"2\" height=\"8\"/></pattern>",
        );
        out.push_str("</defs></svg>\n<main>\n");
        Self { out }
    }

    /// A title, which is text.
    pub fn heading(&mut self, level: u8, text: &str) {
        let _ = writeln!(self.out, "<h{level}>{}</h{level}>", escape(text));
    }

    /// A paragraph, which is text.
    pub fn paragraph(&mut self, class: &str, text: &str) {
        let _ = writeln!(self.out, "<p class=\"{class}\">{}</p>", escape(text));
    }

    /// What is HTML already.
    pub fn html(&mut self, html: &str) {
        self.out.push_str(html);
        self.out.push('\n');
    }

    /// Numbers side by side, each with what it is. Both are text.
    pub fn figures(&mut self, figures: &[(&str, String)]) {
        self.out.push_str("<dl class=\"figures\">\n");
        for (name, value) in figures {
            let _ = writeln!(self.out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        self.out.push_str("</dl>\n");
    }

    /// A table; cells are HTML. Columns whose place is in `numbers` are set right.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>], numbers: &[usize]) {
        let class = |at: usize| if numbers.contains(&at) { " class=\"number\"" } else { "" };
        self.out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
        for (at, cell) in head.iter().enumerate() {
            let _ = write!(self.out, "<th scope=\"col\"{}>{}</th>", class(at), escape(cell));
        }
        self.out.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let _ = write!(self.out, "<td{}>{cell}</td>", class(at));
            }
            self.out.push_str("</tr>\n");
        }
        self.out.push_str("</tbody></table></div>\n");
    }

    /// A panel with its title, its unit and its legend. `height` is of the picture on a wide screen.
    pub fn panel(&mut self, panel: &Panel, end: f64, marks: &[Mark], height: f64, with_labels: bool) {
        let unit = Axis::new(panel.unit, panel.most(), 5).unit;
        let unit = if unit.is_empty() { String::new() } else { format!(" <span class=\"unit\">{unit}</span>") };
        let _ = writeln!(self.out, "<figure>\n<figcaption><h3>{}{unit}</h3>", escape(&panel.title));
        let lines = panel.lines.iter().map(|line| (&line.name, swatch(line.tone, None)));
        // From top to bottom, as they stand.
        let bands = panel.stack.bands.iter().rev().map(|band| (&band.name, swatch(band.tone, Some(band.hatched))));
        let keys: Vec<(&String, String)> = lines.chain(bands).collect();
        if keys.len() > 1 || keys.iter().any(|(name, _)| !name.is_empty()) {
            self.out.push_str("<ul class=\"legend\">");
            for (key, swatch) in keys {
                let _ = write!(self.out, "<li>{swatch}{}</li>", name(key));
            }
            self.out.push_str("</ul>");
        }
        self.out.push_str("</figcaption>\n");
        self.widths(|width| svg::panel(panel, end, marks, Size { width, height, with_labels }));
        self.end_figure(&panel.note);
    }

    /// A picture without a time axis: its title, which is text, and what is drawn for each width. `note` is a sentence
    /// below it, or nothing.
    pub fn figure(&mut self, title: &str, note: &str, draw: impl Fn(f64) -> String) {
        let _ = writeln!(self.out, "<figure>\n<figcaption><h3>{}</h3></figcaption>", escape(title));
        self.widths(draw);
        self.end_figure(note);
    }

    /// Small pictures side by side, each with the end of its own time axis, in seconds.
    pub fn small_panels(&mut self, panels: &[(Panel, f64)]) {
        let (_, width) = WIDTHS[0];
        self.out.push_str("<div class=\"several\">\n");
        for (panel, end) in panels {
            let unit = Axis::new(panel.unit, panel.most(), 5).unit;
            let picture = svg::panel(panel, *end, &[], Size { width, height: 70.0, with_labels: false });
            let _ = writeln!(
                self.out,
                "<figure>\n<figcaption><h3>{} <span class=\"unit\">{unit}</span></h3></figcaption>\n{picture}",
                escape(&panel.title)
            );
            self.end_figure(&panel.note);
        }
        self.out.push_str("</div>\n");
    }

    fn widths(&mut self, draw: impl Fn(f64) -> String) {
        for (class, width) in WIDTHS {
            let _ = writeln!(self.out, "<div class=\"{class}\">{}</div>", draw(width));
        }
    }

    fn end_figure(&mut self, note: &str) {
        if !note.is_empty() {
            let _ = writeln!(self.out, "<p class=\"note\">{}</p>", escape(note));
        }
        self.out.push_str("</figure>\n");
    }

    /// Ends the page.
    pub fn finish(mut self) -> String {
        self.out.push_str("</main>\n</body>\n</html>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup_nor_drive_anything() {
        assert_eq!(escape("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(escape("one\ntwo \u{1b}[2J\u{202e}\0 µs"), "one\ntwo \u{fffd}[2J\u{fffd}\u{fffd} µs");
    }
}
