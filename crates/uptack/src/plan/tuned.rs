//! The asymmetric laws.

use super::certify::Certified;
use super::limits::Limits;
use super::request::Request;

pub(super) fn certified(_request: &Request, _limits: &Limits, _starts: &[Certified]) -> Option<Certified> {
    None
}
