//! Parts of tables that many pages have.

use maud::{Markup, html};

/// The first row, with a heading for each column.
pub(super) fn head(columns: &[&str]) -> Markup {
    html! {
        thead { tr { @for column in columns { th scope="col" { (column) } } } }
    }
}

/// A table that scrolls by itself where the page is narrow.
pub(super) fn scrolling(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="group" aria-label=(label) { (table) } }
}
