//! The least value of a function of one number. It chooses tilts and decides no claim (`docs/accounting.md`, "Tilting").

/// Where a function that falls and then rises is least, by golden section: in at most `steps` steps, to `precision` of the
/// interval's width.
pub(crate) fn golden_section(
    (from, to): (f64, f64),
    steps: usize,
    precision: f64,
    function: impl Fn(f64) -> f64,
) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (from, to);
    let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_left, mut at_right) = (function(left), function(right));
    for _ in 0..steps {
        if high - low <= precision * (to - from) {
            break;
        }
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = function(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = function(right);
        }
    }
    0.5 * (low + high)
}
