//! The README's table of alternatives.
