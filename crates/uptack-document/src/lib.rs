//! Results of Uptack as documents: what the command line prints as JSON, and what Python's results hold.
//!
//! Both ask the library and write down its answer. That is done here, once, so they agree to the last digit. The same goes
//! for what both read or fill in: a plan with only some parts given ([`Wanted`]), a mechanism in a JSON file
//! ([`mechanism_from_json`]), the chart of a plan ([`plan_sheet`]).

mod channel;
mod contributions;
mod error;
mod estimate;
mod options;
mod plan;
mod privacy;
mod scale;
mod wanted;

pub use channel::{AlgebraDocument, ChannelDocument, PredictedSd, any_mechanism_from_json, mechanism_from_json};
pub use contributions::contributions_json;
pub use error::Error;
pub use estimate::{EstimateDocument, Estimates, SimulationDocument, interval_name};
pub use options::{
    EstimatedOptions, OptionTally, contribution_privacy_json, contribution_views_json, simulated_options_json,
};
pub use plan::{any_plan_json, plan_charts, plan_json, plan_sheet, planned_views, sheet_points};
pub use privacy::{
    AuditDocument, ForeignDocument, PrivacyDocument, check_holds, pure_json, repeated_json, verification_json,
    views_json,
};
pub use scale::OptionScale;
pub use wanted::{LinkedLimit, PlanError, Purpose, Solvable, TrustWanted, Wanted};
