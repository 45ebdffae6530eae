//! Enrolment against those who cheat: a second desk's leader, an outsider, an owner that wants two places.

use std::path::Path;
use tempfile::TempDir;
use uptack::{
    card::{Aggregators, Card, Enrolment, Timestamp},
    plan::{Prior, Request, plan},
    privacy::{Delta, Epsilon},
};
use uptack_dap::{
    card_task,
    client::{Client, SealedReport},
    credential::{Credential, OwnerSecret},
    protocol::{Measurement, TaskId},
    task::TaskSet,
};
use uptack_server::aggregator::Pair;

use crate::aggregator::support::now;

/// A desk's pair of aggregators, with one card that enrolled owners may answer.
struct Desk {
    _data: TempDir,
    _pair: Pair,
    task: TaskId,
    opens: u64,
    client: Client,
}

impl Desk {
    async fn start(enrolled: &[&OwnerSecret]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let list = data.path().join("keys");
        write_keys(&list, enrolled);
        let pair = Pair::start(data.path(), |config| config.credentials = Some(list.clone())).await.unwrap();
        let card = card(&pair);
        let parameters = card_task::parameters(&card).unwrap();
        let task = TaskSet::generate(parameters.clone()).unwrap().with_card(&card.canonical()).unwrap();
        pair.add_task(&task).await.unwrap();
        let (task, opens) = (parameters.task_id, card.window().unwrap().0);
        Self { _data: data, _pair: pair, task, opens, client: Client::new(parameters).unwrap() }
    }

    async fn report(&self) -> SealedReport {
        self.client.seal(&Measurement::Cell(0), self.opens).await.unwrap()
    }

    async fn takes(&self, report: &SealedReport, credential: Option<&Credential>) -> bool {
        match self.client.send_as(report, credential).await {
            Ok(()) => true,
            Err(error) => {
                assert!(error.is_refused(), "{error}");
                false
            }
        }
    }
}

fn write_keys(list: &Path, owners: &[&OwnerSecret]) {
    let lines: Vec<String> = owners.iter().map(|owner| owner.public().to_string()).collect();
    std::fs::write(list, lines.join("\n")).unwrap();
}

fn card(pair: &Pair) -> Card {
    let mut request = Request::new(200, Prior::at(20));
    request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
    let mut card = Card::new(&request, &plan(&request).unwrap());
    let (opens, closes) = card_task::window(now(), 600).unwrap();
    card.opens = Some(Timestamp::from_seconds(opens).unwrap());
    card.closes = Some(Timestamp::from_seconds(closes).unwrap());
    card.enrolment = Some(Enrolment::Required);
    let (leader, helper) = (pair.leader.url().to_string(), pair.helper.url().to_string());
    card.aggregators = Some(Aggregators { leader, helper });
    card
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_desks_leader_cannot_use_up_a_place_at_the_first() {
    let owner = OwnerSecret::generate();
    let (first, second) = (Desk::start(&[&owner]).await, Desk::start(&[&owner]).await);
    // The owner answers the second desk, whose leader keeps everything that it is shown.
    let shown = second.report().await;
    let captured = owner.credential(&second.task, &shown);
    assert!(second.takes(&shown, Some(&captured)).await);
    // It makes a report of its own for the first desk and shows what it captured; it also passes on what it got.
    assert!(!first.takes(&first.report().await, Some(&captured)).await);
    assert!(!first.takes(&shown, Some(&captured)).await);
    // The place is still the owner's.
    let report = first.report().await;
    assert!(first.takes(&report, Some(&owner.credential(&first.task, &report))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_credential_is_good_for_its_own_report_alone() {
    let owner = OwnerSecret::generate();
    let desk = Desk::start(&[&owner]).await;
    let report = desk.report().await;
    let credential = owner.credential(&desk.task, &report);
    // A proxy that holds the owner's report back and sends another in its place, also under the same id.
    assert!(!desk.takes(&desk.report().await, Some(&credential)).await);
    let forged = desk.client.reseal(&Measurement::Cell(1), &report).await.unwrap();
    assert_eq!(forged.id(), report.id());
    assert!(!desk.takes(&forged, Some(&credential)).await);
    // The owner is not hurt by it, and may repeat itself.
    assert!(desk.takes(&report, Some(&credential)).await);
    assert!(desk.takes(&report, Some(&credential)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invented_owner_and_a_borrowed_name_are_refused() {
    let (owner, stranger) = (OwnerSecret::generate(), OwnerSecret::generate());
    let desk = Desk::start(&[&owner]).await;
    let report = desk.report().await;
    let invented = stranger.credential(&desk.task, &report);
    assert!(!desk.takes(&report, Some(&invented)).await);
    // The public key of an enrolled owner, with a signature by somebody else, or with none.
    let signature = invented.as_str().split_once('.').unwrap().1;
    for borrowed in [format!("{}.{signature}", owner.public()), owner.public().to_string(), String::new()] {
        assert!(!desk.takes(&report, Some(&Credential::from_text(borrowed))).await);
    }
    assert!(!desk.takes(&report, None).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enrolled_owner_has_one_place() {
    let owner = OwnerSecret::generate();
    let desk = Desk::start(&[&owner]).await;
    let (report, another) = (desk.report().await, desk.report().await);
    assert!(desk.takes(&report, Some(&owner.credential(&desk.task, &report))).await);
    assert!(!desk.takes(&another, Some(&owner.credential(&desk.task, &another))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_list_does_not_pretend_to_have_one() {
    let data = tempfile::tempdir().unwrap();
    let pair = Pair::start(data.path(), |_| {}).await.unwrap();
    let card = card(&pair);
    let task = TaskSet::generate(card_task::parameters(&card).unwrap()).unwrap().with_card(&card.canonical()).unwrap();
    // The helper sees no credentials and needs no list.
    pair.helper.add_task(task.helper).await.unwrap();
    let told = pair.leader.add_task(task.leader).await.unwrap_err().to_string();
    assert!(told.contains("no list of enrolled owners"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_the_earlier_form_is_refused_with_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let list = data.path().join("keys");
    std::fs::write(&list, uptack_dap::token::Token::generate().hash().to_text()).unwrap();
    let told = Pair::start(data.path(), |config| config.credentials = Some(list.clone())).await.err().unwrap();
    let told = told.to_string();
    assert!(told.contains("line 1") && told.contains("earlier version"), "{told}");
}
