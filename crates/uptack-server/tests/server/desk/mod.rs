//! The desk as analysts, owners and operators meet it.

mod dishonest_analyst;
mod dishonest_operator;
mod dishonest_outsider;
mod elsewhere;
mod interface;
mod lifecycle;
mod pages;
mod pages_attacked;
mod restarts;
mod support;
mod support_pages;
mod verification;
mod web_pages;
