//! Results of Uptack as documents: what the command line prints as JSON, and what Python's results hold.
//!
//! Both ask the library and write down its answer. That is done here, once, so they agree to the last digit. The same goes
//! for what both read or fill in: a plan with only some parts given ([`Wanted`]), a mechanism in a JSON file
//! ([`mechanism_from_json`]), the chart of a plan ([`plan_sheet`]).

mod algebra;
mod audit;
mod channel;
mod error;
mod estimate;
mod mechanism;
mod plan;
mod plan_chart;
mod privacy;
mod simulate;
mod trust;
mod verify;
mod views;
mod wanted;

pub use algebra::{AlgebraDocument, Crowd};
pub use audit::{AuditDocument, ForeignDocument};
pub use channel::ChannelDocument;
pub use error::Error;
pub use estimate::{EstimateDocument, Solved, interval_name};
pub use mechanism::mechanism_from_json;
pub use plan::plan_json;
pub use plan_chart::{plan_sheet, sheet_points};
pub use privacy::PrivacyCard;
pub use simulate::SimulationDocument;
pub use trust::{Bound, TrustWanted, Trusted};
pub use verify::{check_holds, verification_json};
pub use views::{repeated_json, views_json};
pub use wanted::{PlanError, Wanted};
