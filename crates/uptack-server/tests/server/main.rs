//! Both servers as their callers meet them; one binary, because linking one takes longer than most of its tests.

mod aggregator;
mod desk;
