//! A filter as it is stored between two queries (`docs/composition.md`, "Adaptive budgets").

use serde::{Deserialize, Serialize};

use super::{Filter, ORDERS, Spent};

/// The form in which a filter is stored: numbers as decimal text, which reads back to the same bits in every format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    version: u32,
    epsilon: String,
    delta: String,
    orders: [String; ORDERS],
    queries: u64,
    largest: String,
    infinite: String,
    moments: [String; ORDERS],
}

/// The meaning of the stored sums: what the shares are. Another rule needs another number.
const VERSION: u32 = 1;

impl From<Filter> for Stored {
    fn from(filter: Filter) -> Self {
        let text = |number: f64| format!("{number:e}");
        Self {
            version: VERSION,
            epsilon: text(filter.epsilon),
            delta: text(filter.delta),
            orders: filter.orders.map(text),
            queries: filter.spent.queries,
            largest: text(filter.spent.largest),
            infinite: text(filter.spent.infinite),
            moments: filter.spent.moments.map(text),
        }
    }
}

impl TryFrom<Stored> for Filter {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.version != VERSION {
            return Err(format!("a privacy budget of version {} cannot be read; this is {VERSION}", stored.version));
        }
        let mut filter = Self::new(number("epsilon", &stored.epsilon)?, number("delta", &stored.delta)?)
            .map_err(|error| error.to_string())?;
        filter.spent = stored.spent()?;
        for (order, text) in filter.orders.iter_mut().zip(&stored.orders) {
            *order = order_of(text)?;
        }
        filter.check(&filter.spent).map_err(|_| "the stored privacy budget is overspent".to_owned())?;
        Ok(filter)
    }
}

impl Stored {
    fn spent(&self) -> Result<Spent, String> {
        let mut moments = [0.0; ORDERS];
        let (largest, infinite) = (number("largest", &self.largest)?, number("infinite", &self.infinite)?);
        for (moment, text) in moments.iter_mut().zip(&self.moments) {
            *moment = number("moments", text)?;
        }
        Ok(Spent { queries: self.queries, largest, infinite, moments })
    }
}

/// A stored number, which is not negative.
fn number(name: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err(format!("{name} of a privacy budget must be a number that is not negative")),
    }
}

/// A stored order of moments.
fn order_of(text: &str) -> Result<f64, String> {
    let order = number("orders", text)?;
    if order.is_normal() {
        Ok(order)
    } else {
        Err("an order of a privacy budget must be positive and finite".to_owned())
    }
}
