//! The extension module `uptack._core`: the library's functions with plain arguments and documents of JSON as results.
//!
//! The package's own Python code gives them their defaults, types and looks. Long work runs on a thread of its own,
//! without the interpreter's lock, while the caller's thread looks for signals and reports the progress.

mod audit;
mod channel;
mod composition;
mod contributions;
mod failure;
mod long_work;
mod option_results;
mod plan;
mod privacy;
mod results;

/// The module's content.
#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::audit::{audit_callable, audit_channel};
    #[pymodule_export]
    use super::channel::PyChannel;
    #[pymodule_export]
    use super::composition::{PyComposition, release_loss};
    #[pymodule_export]
    use super::contributions::{PyContributions, mechanism};
    #[pymodule_export]
    use super::option_results::{audit_contributions, bars, contribution_privacy, simulate_contributions};
    #[pymodule_export]
    use super::plan::{PyPlan, make_plan};
    #[pymodule_export]
    use super::privacy::{all_views, some_views};
    #[pymodule_export]
    use super::results::{
        algebra, claim, consistent, each_confidence, evaluate, nearest, simulate, simultaneous_kind, verify,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
