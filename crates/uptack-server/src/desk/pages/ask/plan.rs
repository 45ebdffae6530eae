//! Plans and their charts, each computed once however many ask for it.

use std::time::Duration;
use uptack::{
    plan::{Solved, errors_by_family},
    privacy,
    simulate::Progress,
};
use uptack_chart::PlanCharts;

use super::wanted::Wanted;
use crate::desk::pages::{
    Pages,
    work::{Found, Jobs},
};

/// The latest plans and their charts.
#[derive(Default)]
pub(in crate::desk::pages) struct Plans {
    plans: Jobs<Planned>,
    charts: Jobs<Vec<String>>,
}

/// The outcome of planning.
pub(super) enum Planned {
    Plan {
        solved: Box<Solved>,
        /// What it gives away, in sentences.
        statement: String,
    },
    /// Why there is no plan, and what request would have one.
    Impossible(String),
}

impl Pages {
    pub(super) async fn plan(&self, wanted: Wanted, patience: Duration) -> Found<Planned> {
        let key = wanted.key();
        self.work.find(&self.plans.plans, &key, patience, move || Planned::of(&wanted)).await
    }

    /// The plan's charts as SVG: against ε, against the owners and, with noise, against the linked ε.
    pub(super) async fn charts(&self, wanted: Wanted, patience: Duration) -> Found<Vec<String>> {
        let key = wanted.key();
        let planned = match self.plan(wanted, patience).await {
            Found::Done(planned) => planned,
            Found::Later => return Found::Later,
            Found::Busy => return Found::Busy,
        };
        self.work.find(&self.plans.charts, &key, patience, move || planned.charts()).await
    }
}

impl Planned {
    fn of(wanted: &Wanted) -> Self {
        Self::solve(wanted).unwrap_or_else(|error| Self::Impossible(super::error_words(error)))
    }

    fn solve(wanted: &Wanted) -> Result<Self, uptack::Error> {
        let solved = wanted.solve(&Progress::default())?;
        let best = &solved.plan.best;
        let accountant = privacy::release(&best.channel, best.views.release.owners())?;
        let statement = privacy::statement(&best.channel, &best.views, &accountant, None);
        Ok(Self::Plan { solved: Box::new(solved), statement })
    }

    fn charts(&self) -> Vec<String> {
        match self {
            Self::Plan { solved, .. } => charts(solved),
            Self::Impossible(_) => Vec::new(),
        }
    }
}

fn charts(solved: &Solved) -> Vec<String> {
    let charts = PlanCharts::around(&solved.request, &solved.plan);
    let errors: Vec<_> = charts.requests().into_iter().map(|at| errors_by_family(at).unwrap_or_default()).collect();
    charts.draw(&errors).iter().map(uptack_chart::Chart::to_svg).collect()
}
