//! Plans and their charts, each computed once however many ask for it.

use std::time::Duration;
use uptack::{
    Progress,
    card::WholePlan,
    plan::{AnySolved, Solved},
    privacy,
};
use uptack_chart::Chart;
use uptack_document::plan_charts;

use super::{reading::FieldFault, whole::WholeWanted};
use crate::desk::pages::{
    Pages,
    work::{Computations, Computed},
};

/// The latest plans and their charts.
#[derive(Default)]
pub(in crate::desk::pages) struct Plans {
    plans: Computations<PlanOutcome>,
    charts: Computations<Vec<String>>,
}

/// The outcome of planning.
pub(super) enum PlanOutcome {
    Plan {
        whole: Box<WholePlan>,
        /// The guarantees of a single question, in sentences.
        statement: Option<String>,
        /// Why the result would say next to nothing, if it would.
        imprecision: Option<String>,
    },
    /// Why there is no plan, and which request would have one.
    Impossible(FieldFault),
}

impl Pages {
    pub(super) async fn plan(&self, wanted: WholeWanted, patience: Duration) -> Computed<PlanOutcome> {
        let key = wanted.key();
        self.work.find(&self.plans.plans, &key, patience, move || PlanOutcome::of(&wanted)).await
    }

    /// The plan's charts as SVG: against ε, against the owners and, with noise, against the linked ε.
    pub(super) async fn charts(&self, wanted: WholeWanted, patience: Duration) -> Computed<Vec<String>> {
        let key = wanted.key();
        let planned = match self.plan(wanted, patience).await {
            Computed::Done(planned) => planned,
            Computed::Later => return Computed::Later,
            Computed::Busy => return Computed::Busy,
        };
        self.work.find(&self.plans.charts, &key, patience, move || planned.charts()).await
    }
}

impl PlanOutcome {
    fn of(wanted: &WholeWanted) -> Self {
        Self::solve(wanted).unwrap_or_else(|error| Self::Impossible(error.into()))
    }

    fn solve(wanted: &WholeWanted) -> Result<Self, uptack::Error> {
        let whole = wanted.plan()?;
        let statement = match &whole.solved {
            AnySolved::YesNo(one) if whole.queries == 1 => Some(statement(one)?),
            _ => None,
        };
        let imprecision = wanted.imprecision(&whole);
        Ok(Self::Plan { whole: Box::new(whole), statement, imprecision })
    }

    fn charts(&self) -> Vec<String> {
        match self {
            Self::Plan { whole, .. } => charts(whole),
            Self::Impossible(_) => Vec::new(),
        }
    }
}

/// The guarantees of the only query, in sentences.
fn statement(one: &Solved) -> Result<String, uptack::Error> {
    let best = &one.plan.best;
    let accountant = privacy::release(&best.channel, best.views.release.owners())?;
    Ok(privacy::statement(&best.channel, &best.views, &accountant, None))
}

fn charts(whole: &WholePlan) -> Vec<String> {
    // Contributions follow from closed forms, and have no families to compare.
    let AnySolved::YesNo(one) = &whole.solved else { return Vec::new() };
    // One thread: the desk has other work to do.
    let charts = plan_charts(&one.request, &one.plan, 1, &Progress::default());
    charts.iter().map(Chart::to_svg).collect()
}
