//! What a release tells about one owner, and how that adds up.

pub mod composition;
