//! Local views: pure guarantees simply add (`docs/composition.md`, "What is claimed, and when it holds").

use super::not_negative;
use crate::Result;
use crate::certified::rounding::{ROUNDOFF, up};

/// The local ε of an owner who gives `times` answers, each with local `epsilon`, rounded up.
///
/// Holds for queries chosen adaptively too, as long as every one of them keeps `epsilon`. An infinite `epsilon` (no
/// local guarantee) stays infinite.
///
/// ```
/// use uptack::privacy::composition::add_local;
/// assert!(add_local(0.1, 3)? >= 0.3);
/// assert_eq!(add_local(0.0, 1_000_000)?, 0.0);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn add_local(epsilon: f64, times: u64) -> Result<f64> {
    if epsilon == f64::INFINITY && times > 0 {
        return Ok(f64::INFINITY);
    }
    let epsilon = not_negative("epsilon", epsilon)?;
    match times {
        0 => Ok(0.0),
        1 => Ok(epsilon),
        // A zero stays zero exactly; the count itself may be rounded when it is converted.
        _ if epsilon == 0.0 => Ok(0.0),
        _ => Ok(up(epsilon * times as f64, 4.0 * ROUNDOFF)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_upwards() {
        assert_eq!(add_local(0.7, 1).unwrap(), 0.7);
        assert_eq!(add_local(0.7, 0).unwrap(), 0.0);
        let sum = add_local(0.1, 10).unwrap();
        assert!(sum > 1.0 && sum < 1.0 + 1e-14);
        assert_eq!(add_local(f64::INFINITY, 2).unwrap(), f64::INFINITY);
        assert!(add_local(-0.1, 2).is_err() && add_local(f64::NAN, 2).is_err());
    }
}
