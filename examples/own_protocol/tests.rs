//! Tests of the page about writing a protocol: its code is compiled and run, and the output on the
//! page is compared with the actual output.

use super::{MailboxMutant, add_up, explored, in_steps, invariants, with_a_death, without_flushes};
use onesided::{
    Group, ProgramResult,
    explore::Report,
    prdma::{Buffer, Cartesian, Form, Neighbourhood, Options, Topology},
    sim::{
        shm::Threads,
        virt::{Job, Platform},
    },
};
use rdma_fabric::Fabric;

const PAGE: &str = include_str!("../../docs/learn/own-protocol.md");
/// The files that the page quotes.
const QUOTED: [&str; 2] = [include_str!("main.rs"), include_str!("tests.rs")];

/// Returns the page's code blocks in `language`.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks: Vec<_> = PAGE.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty(), "nothing in {language}");
    blocks
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn all_code_of_the_page_is_compiled() {
    for block in blocks("rust") {
        let block = lines(block);
        let quotes = |file: &&str| lines(file).windows(block.len()).any(|part| part == block);
        assert!(QUOTED.iter().any(quotes), "nowhere:\n{}", block.join("\n"));
    }
}

/// Checks that `report` is the text that the page shows for `option`. A line of the page that ends
/// in an ellipsis is only a beginning.
fn told(report: &Report, option: &str) {
    let block =
        blocks("console").into_iter().find(|block| block.lines().next().is_some_and(|first| first.ends_with(option)));
    let wanted = lines(block.unwrap_or_else(|| panic!("the page has nothing with {option}")));
    let text = report.to_string();
    let got = lines(&text);
    let same = |(wanted, got): (&&str, &&str)| {
        wanted.strip_suffix("...").map_or(wanted == got, |beginning| got.starts_with(beginning))
    };
    let wanted = &wanted[1..];
    assert!(wanted.len() <= got.len() && wanted.iter().zip(&got).all(same), "the page has another text than\n{text}");
}

#[test]
fn the_explorer_says_what_the_page_says() {
    told(explored(None).expect_exhausted(), "--explore");
    let report = explored(Some(MailboxMutant::Flush));
    report.expect_violation();
    told(&report, "--mistake flush");
}

fn simulated(mutant: Option<MailboxMutant>, seed: u64) -> Result<Vec<u64>, String> {
    let job = Job::new(&Platform::fx100(), 4).seed(seed).shuffle_ties(seed != 0);
    job.run(&async |fabric| add_up(fabric, mutant).await).map(|run| run.outs).map_err(|error| error.to_string())
}

#[test]
fn the_right_protocol_is_right_everywhere() {
    assert_eq!(Threads::new(4).run(&async |fabric| add_up(fabric, None).await).unwrap(), [6; 4]);
    for seed in 0..20 {
        assert_eq!(simulated(None, seed), Ok(vec![6; 4]), "seed {seed}");
    }
}

/// Four mutants, and what detects each.
#[test]
fn each_mutant_is_found() {
    let found = |mutant| explored(Some(mutant)).expect_violation().what.clone();
    assert_eq!(found(MailboxMutant::Flush), "rank 0: an error: the sum is 0");
    assert!(found(MailboxMutant::Atomic).starts_with("deadlock"));
    assert_eq!(found(MailboxMutant::Check), "rank 0: an error: the sum is 0");
    assert!(found(MailboxMutant::Region).contains("was deregistered"));
    assert!(simulated(Some(MailboxMutant::Atomic), 0).unwrap_err().starts_with("deadlock"));
    assert!(simulated(Some(MailboxMutant::Check), 0).unwrap_err().contains("the sum is 0"));
    assert!(simulated(Some(MailboxMutant::Region), 0).unwrap_err().contains("was deregistered"));
    // No put overtakes another here, which is why the explorer is needed.
    assert_eq!(simulated(Some(MailboxMutant::Flush), 0), Ok(vec![6; 4]));
}

#[test]
fn the_recipe_s_other_reports_are_what_the_page_says() {
    invariants().expect_exhausted();
    with_a_death().expect_exhausted();
    without_flushes().expect_violation();
    let right = in_steps(true);
    right.expect_exhausted();
    let wrong = in_steps(false);
    assert!(wrong.contradiction.is_some_and(|text| text.starts_with("behind the end of a step")), "a step forgets");
}

/// Two ranks, each the other's left and right neighbour: the blocks that the other has sent to the
/// left and to the right, where they arrive.
async fn left_and_right(fabric: Fabric, on_a_ring: bool) -> ProgramResult<[u8; 2]> {
    let world = Group::world(&fabric).await?;
    let (me, other) = (world.me(), 1 - world.me());
    let neighbours = match on_a_ring {
        true => Cartesian::new(&[2], &[true])?.topology(me),
        false => Topology::graph(2, me, &[other, other], &[other, other])?,
    };
    let mut hood = Neighbourhood::new(world, neighbours).await?;
    let (send, receive) = (Buffer::<u8>::new(&fabric, 2)?, Buffer::<u8>::new(&fabric, 2)?);
    send.write(0, b"LR")?;
    let mut exchange = hood.alltoall_init(&send, &receive, 1, &Options::form(Form::Cpu)).await?;
    exchange.start().await?;
    exchange.wait().await?;
    let mut got = [0; 2];
    receive.read(0, &mut got)?;
    hood.group_mut().barrier().await?;
    Ok(got)
}

async fn neighbours(fabric: Fabric, on_a_ring: bool) -> ProgramResult<[u8; 2]> {
    left_and_right(fabric, on_a_ring).await
}

#[test]
fn on_two_ranks_a_ring_crosses_and_a_graph_does_not() {
    let got = |on_a_ring| Threads::new(2).run(&async |fabric| neighbours(fabric, on_a_ring).await).unwrap();
    // What went to the left comes from the right.
    assert_eq!(got(true), [*b"RL"; 2]);
    assert_eq!(got(false), [*b"LR"; 2]);
}
