//! The desk as analysts, owners and operators meet it.

mod dishonest_analyst;
mod dishonest_operator;
mod dishonest_outsider;
mod elsewhere;
mod interface;
mod lifecycle;
mod restarts;
mod support;
mod verification;
mod web_pages;
