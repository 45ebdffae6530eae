//! Rounding of numbers that people read. Nothing else rounds for display.
//!
//! A claim of privacy is rounded up, a lower end down, an interval outwards, and everything else to the nearest, so that
//! a printed number never promises more than the computed one. Rounding works on the digits of the shortest decimal that
//! reads back as the number, as it stands in JSON and on cards; it does no floating-point arithmetic.
//!
//! ```
//! use uptack::display;
//! assert_eq!(display::claim(1.000_000_000_5), "1.0001");
//! assert_eq!(display::claim(0.2), "0.2");
//! assert_eq!(display::lower_end(0.999_999_9), "0.99999");
//! assert_eq!(display::nearest(22.693_875), "22.694");
//! ```

/// The significant digits that people are shown.
pub const DIGITS: usize = 5;

/// What is printed if there is no guarantee.
pub const NONE: &str = "none";

/// Numbers whose power of ten is outside this range are written with an exponent.
const PLAIN: std::ops::Range<i32> = -4..15;

/// The items one after the other, with a separator between them.
pub(crate) fn separated(items: impl IntoIterator<Item: ToString>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}

/// Which way a number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Never less than the number.
    Up,
    /// Never more than the number.
    Down,
    /// The closest; a tie goes away from zero.
    Nearest,
}

/// A claim, ε or δ: rounded up. `none` if there is no guarantee.
pub fn claim(value: impl Into<Option<f64>>) -> String {
    value.into().map_or(NONE.to_owned(), |value| rounded(value, DIGITS, Rounding::Up))
}

/// A lower bound on the truth: rounded down. `none` if there is no such number.
pub fn lower_end(value: impl Into<Option<f64>>) -> String {
    value.into().map_or(NONE.to_owned(), |value| rounded(value, DIGITS, Rounding::Down))
}

/// An estimate, a standard deviation, a measured value: rounded to the nearest.
pub fn nearest(value: f64) -> String {
    rounded(value, DIGITS, Rounding::Nearest)
}

/// Both ends of an interval, rounded outwards.
pub fn interval(low: f64, high: f64) -> [String; 2] {
    [rounded(low, DIGITS, Rounding::Down), rounded(high, DIGITS, Rounding::Up)]
}

/// A number with `digits` significant digits: more if there are more before the point, fewer if it would end in zeros.
pub fn rounded(value: f64, digits: usize, rounding: Rounding) -> String {
    let Some(exact) = Decimal::of(value) else { return NONE.to_owned() };
    let before_point = if exact.is_plain() { usize::try_from(exact.exponent + 1).unwrap_or(0) } else { 0 };
    let keep = digits.max(before_point);
    exact.keeping(keep.max(1) as i64, rounding).to_string()
}

/// A number rounded to its first `digits` digits, wherever its point is: 1 234 567 to two digits is 1 200 000.
pub(crate) fn first_digits(value: f64, digits: u32, rounding: Rounding) -> f64 {
    let exact = Decimal::of(value).map(|exact| exact.keeping(i64::from(digits), rounding).to_string());
    exact.and_then(|text| text.parse().ok()).unwrap_or(value)
}

/// A share as a percentage with at most this many places after the point.
pub fn percent(share: f64, places: usize, rounding: Rounding) -> String {
    let Some(mut exact) = Decimal::of(share) else { return NONE.to_owned() };
    exact.exponent += 2;
    let keep = i64::from(exact.exponent) + 1 + places as i64;
    format!("{} %", exact.keeping(keep, rounding))
}

/// A count with spaces between its thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// ±d₀.d₁d₂… · 10^exponent, without zeros at either end; zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// Zero, which has no digits.
    fn zero() -> Self {
        Self { negative: false, digits: Vec::new(), exponent: 0 }
    }

    /// The shortest decimal that reads back as `value`; `None` if that is not finite.
    pub(crate) fn of(value: f64) -> Option<Self> {
        if value.is_finite() { Self::read(&format!("{value:e}")) } else { None }
    }

    /// The exact decimal that a text stands for.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (negative, size) = text.strip_prefix('-').map_or((false, text), |size| (true, size));
        let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, part].concat().bytes().map(digit).collect::<Option<Vec<u8>>>()?;
        let whole_digits = i32::try_from(whole.len()).ok()?;
        let exponent = exponent.parse::<i32>().ok()?.checked_add(whole_digits)?.checked_sub(1)?;
        if digits.is_empty() { None } else { Self { negative, digits, exponent }.trimmed() }
    }

    /// How many digits it has; zero has none.
    pub(crate) fn len(&self) -> usize {
        self.digits.len()
    }

    /// Whether it is below another one; both are at least zero.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        let key = |decimal: &Self| (!decimal.digits.is_empty()).then_some(decimal.exponent);
        (key(self), &self.digits) < (key(other), &other.digits)
    }

    fn is_plain(&self) -> bool {
        PLAIN.contains(&self.exponent)
    }

    /// Rounded to the first `keep` digits. If `keep` is not positive, the first digit comes after the last place that is kept.
    pub(crate) fn keeping(mut self, keep: i64, rounding: Rounding) -> Self {
        if keep >= self.digits.len() as i64 {
            return self;
        }
        // Something other than zero is cut off, because the last digit is not zero.
        let is_away = self.rounds_away(keep, rounding);
        self.digits.truncate(keep.max(0) as usize);
        if is_away {
            self.increment(keep);
        }
        self.digits.truncate(self.digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1));
        if self.digits.is_empty() { Self::zero() } else { self }
    }

    /// Whether cutting off what comes after the first `keep` digits, which is not zero, rounds away from zero.
    fn rounds_away(&self, keep: i64, rounding: Rounding) -> bool {
        match rounding {
            Rounding::Up => !self.negative,
            Rounding::Down => self.negative,
            Rounding::Nearest => keep >= 0 && self.digits[keep as usize] >= 5,
        }
    }

    /// Adds one unit of the last place that is kept.
    fn increment(&mut self, keep: i64) {
        while self.digits.last() == Some(&9) {
            self.digits.pop();
        }
        match self.digits.last_mut() {
            Some(digit) => *digit += 1,
            // Every digit was a nine, or none was kept: one unit is a power of ten by itself.
            None => {
                self.exponent += if keep > 0 { 1 } else { 1 - keep as i32 };
                self.digits.push(1);
            }
        }
    }

    /// The digits at these places, with zeros for those that it does not have.
    fn places(&self, first: i32, last: i32) -> String {
        let digit = |place: i32| usize::try_from(place).ok().and_then(|place| self.digits.get(place)).unwrap_or(&0);
        (first..=last).map(|place| char::from(b'0' + digit(place))).collect()
    }

    /// Without zeros at either end.
    fn trimmed(self) -> Option<Self> {
        let Some(first) = self.digits.iter().position(|&digit| digit != 0) else {
            return Some(Self::zero());
        };
        let last = self.digits.iter().rposition(|&digit| digit != 0).unwrap_or(first);
        let exponent = self.exponent.checked_sub(i32::try_from(first).ok()?)?;
        Some(Self { digits: self.digits[first..=last].to_vec(), exponent, ..self })
    }
}

fn digit(symbol: u8) -> Option<u8> {
    symbol.is_ascii_digit().then(|| symbol - b'0')
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.digits.len() as i32 - 1;
        let point = if self.is_plain() { self.exponent } else { 0 };
        f.write_str(if self.negative { "-" } else { "" })?;
        f.write_str(&self.places(point.min(0), point))?;
        if last > point {
            write!(f, ".{}", self.places(point + 1, last))?;
        }
        if self.is_plain() { Ok(()) } else { write!(f, "e{}", self.exponent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_readable() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (500.0, "500"),
            (22.693_875, "22.694"),
            (-0.25, "-0.25"),
            (1e-9, "1e-9"),
            (1_234_567.8, "1234568"),
            (99_999.96, "100000"),
            (0.05, "0.05"),
            (9.999_999e-5, "0.0001"),
            (1.5e300, "1.5e300"),
            (f64::INFINITY, "none"),
            (f64::NAN, "none"),
        ] {
            assert_eq!(nearest(value), text);
        }
        assert_eq!([0, 999, 1000, 50_000_000].map(grouped), ["0", "999", "1 000", "50 000 000"]);
    }

    #[test]
    fn claims_go_up_and_lower_ends_down() {
        for (value, up, down) in [
            (0.999_380_3, "0.99939", "0.99938"),
            (5.4927, "5.4927", "5.4927"),
            (0.2, "0.2", "0.2"),
            (1.000_000_000_5, "1.0001", "1"),
            (1.0 + f64::EPSILON, "1.0001", "1"),
            (0.999_999_999, "1", "0.99999"),
            (8.380_53e-9, "8.3806e-9", "8.3805e-9"),
            (99_999.000_1, "100000", "99999"),
            (123_456.7, "123457", "123456"),
            (5e-324, "5e-324", "5e-324"),
        ] {
            assert_eq!((claim(value).as_str(), lower_end(value).as_str()), (up, down));
        }
        assert_eq!((claim(None), lower_end(None), claim(f64::INFINITY)), ("none".into(), "none".into(), "none".into()));
        assert_eq!(interval(-1.000_01, 12.000_01), ["-1.0001", "12.001"]);
    }

    #[test]
    fn percentages_move_the_point_and_nothing_else() {
        assert_eq!(percent(0.57, 4, Rounding::Up), "57 %");
        assert_eq!(percent(0.500_000_1, 4, Rounding::Up), "50.0001 %");
        assert_eq!(percent(1e-9, 4, Rounding::Up), "0.0001 %");
        assert_eq!(percent(1e-9, 4, Rounding::Nearest), "0 %");
        assert_eq!(percent(0.000_5, 1, Rounding::Nearest), "0.1 %");
        assert_eq!(percent(0.000_49, 1, Rounding::Nearest), "0 %");
        assert_eq!(percent(0.9999, 1, Rounding::Down), "99.9 %");
        assert_eq!(percent(1.0, 1, Rounding::Down), "100 %");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_never_better_and_at_most_one_unit_worse(
            mantissa in 1.0f64..10.0, exponent in -300i32..15, digits in 1usize..9
        ) {
            let value: f64 = format!("{mantissa}e{exponent}").parse().unwrap();
            let read = |rounding| rounded(value, digits, rounding).parse::<f64>().unwrap();
            let (up, down, middle) = (read(Rounding::Up), read(Rounding::Down), read(Rounding::Nearest));
            prop_assert!(down <= value && value <= up);
            prop_assert!(middle == up || middle == down);
            // One unit of the last digit that is kept; those before the point all are.
            let last = exponent + 1 - digits as i32;
            let unit: f64 = format!("1e{}", if exponent < -4 { last } else { last.min(0) }).parse().unwrap();
            prop_assert!(up - down <= unit * (1.0 + 1e-6), "{} {} {}", up, down, unit);
        }

        #[test]
        fn rounding_twice_is_rounding_once(value in -1e307..1e307f64) {
            for rounding in [Rounding::Up, Rounding::Down] {
                let once = rounded(value, DIGITS, rounding);
                prop_assert_eq!(rounded(once.parse().unwrap(), DIGITS, rounding), once.clone());
                let finer: f64 = rounded(value, DIGITS + 4, rounding).parse().unwrap();
                prop_assert_eq!(rounded(finer, DIGITS, rounding), once);
            }
        }
    }
}
