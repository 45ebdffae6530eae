//! Text as a field of CSV that programs read back and that no spreadsheet takes for a formula.

/// A field that holds this text. It is quoted if need be, and text that a spreadsheet would evaluate begins with an apostrophe,
/// which spreadsheets take for the sign of plain text.
///
/// ```
/// use uptack::csv::{field, text};
/// assert_eq!(field("station 7"), "station 7");
/// assert_eq!(field("=1+1"), "'=1+1");
/// assert_eq!(field("-5"), "-5", "a number is no formula");
/// assert_eq!(text("\"a, \"\"b\"\"\""), "a, \"b\"");
/// ```
pub fn field(text: &str) -> String {
    let apostrophe = if needs_apostrophe(text) { "'" } else { "" };
    let needs_quotes = text.contains([',', ';', '"', '\n', '\r', '\t']) || text.trim() != text;
    if needs_quotes { format!("\"{apostrophe}{}\"", text.replace('"', "\"\"")) } else { format!("{apostrophe}{text}") }
}

/// The text that such a field holds.
pub fn text(field: &str) -> String {
    let quoted = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let written = quoted.map_or(field.to_owned(), |inner| inner.replace("\"\"", "\""));
    match written.strip_prefix('\'') {
        Some(rest) if needs_apostrophe(rest) => rest.to_owned(),
        _ => written,
    }
}

/// Whether a spreadsheet would evaluate the text, or whether it already looks as if it had been given an apostrophe.
fn needs_apostrophe(text: &str) -> bool {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    let is_escaped = || text.strip_prefix('\'').is_some_and(needs_apostrophe);
    (is_formula && text.parse::<f64>().is_err()) || is_escaped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_and_every_text_reads_back() {
        for hostile in
            ["=HYPERLINK(\"http://x\")", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1", "-inf(", "'=1"]
        {
            let written = field(hostile);
            assert!(written.trim_start_matches('"').starts_with('\''), "{written}");
            assert_eq!(text(&written), hostile);
        }
        for plain in ["", "a", "-5", "+2.5", "'tis", "a,b", "a\"b", "\"", " a", "a;b", "line\nbreak", "=", "''"] {
            assert_eq!(text(&field(plain)), plain, "{}", field(plain));
        }
    }
}
