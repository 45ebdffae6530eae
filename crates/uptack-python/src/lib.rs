//! The extension module `uptack._core`: the library's functions with plain arguments and documents of JSON as results.
//!
//! The package's own Python code gives them their defaults, types and looks. What takes long runs on a thread of its own,
//! without the interpreter's lock, while the caller's thread looks for signals and tells of the progress.

mod audit;
mod channel;
mod evaluate;
mod failure;
mod long_work;
mod plan;
mod privacy;
mod results;

use pyo3::prelude::*;

/// The module's content.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<channel::PyChannel>()?;
    module.add_class::<plan::PyPlan>()?;
    module.add_class::<privacy::PyComposition>()?;
    module.add_function(wrap_pyfunction!(plan::make_plan, module)?)?;
    module.add_function(wrap_pyfunction!(privacy::all_views, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit_channel, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit_callable, module)?)?;
    module.add_function(wrap_pyfunction!(results::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(results::algebra, module)?)?;
    module.add_function(wrap_pyfunction!(results::verify, module)?)?;
    module.add_function(wrap_pyfunction!(results::each_confidence, module)?)?;
    module.add_function(wrap_pyfunction!(results::consistent, module)?)?;
    module.add_function(wrap_pyfunction!(results::claim, module)?)?;
    module.add_function(wrap_pyfunction!(results::nearest, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)
}
