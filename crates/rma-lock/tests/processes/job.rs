//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::{delays, dying::Points, hammered, holders, locked, nodes, scenes};
use checks::killed::{self, Asked, Report, die};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Region};
use std::{env, sync::Arc, time::Duration};

/// The time that the other ranks may take to end after one has died: ten times the expected time.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a job of `ranks` ranks that executes `asked`; its notes are the points passed by the rank
/// that counts them.
pub(crate) fn launch(ranks: usize, asked: &str) -> Report {
    launch_on(ranks, ranks, asked)
}

/// Runs a job as [`launch`] does, as if each node had `per_node` ranks.
pub(crate) fn launch_on(ranks: usize, per_node: usize, asked: &str) -> Report {
    let with = |launcher: tofu2_sim::shm::Launcher| launcher.ranks_per_node(per_node).grace(GRACE);
    killed::launch(ranks, env!("CARGO_TARGET_TMPDIR"), asked, with)
}

async fn play(fabric: Fabric, words: Vec<String>, points: Arc<Points>) -> ProgramResult<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["scene", name, ..] => scenes::play(fabric, scenes::Scene::named(name), points).await,
        ["hammer", victim, micros] => hammered::play(fabric, victim.parse()?, micros.parse()?).await,
        ["holder", lock, held] => holders::play(fabric, lock, held).await,
        ["nodes", victim, held] => nodes::play(fabric, victim.parse()?, held).await,
        ["locked", program] => locked::play(fabric, program).await,
        ["delay", held] => delays::play(fabric, held).await,
        _ => Err(format!("no such part: {words:?}").into()),
    }
}

/// Makes `victim` die with its hold after all other ranks have left the last barrier; at the
/// others, returns when they know of the death. `region` is symmetric memory of 8 bytes that is not
/// used otherwise.
pub(crate) async fn outlive(fabric: &Fabric, victim: Rank, region: &Region, held: impl Sized) -> ProgramResult<()> {
    let told = region.word::<u64>(fabric, 0)?;
    if fabric.rank() == victim {
        fabric.wait_until(&told, Deps::All, |others| others == fabric.ranks() as u64 - 1).await?;
        let _held = held;
        die();
    }
    fabric.fetch_add(&fabric.remote_word::<u64>(region.at(victim, 0))?, 1).await?;
    match fabric.wait_until(&told, Deps::One(victim), |word| word != 0).await {
        Err(FabricError::PeerLost { rank }) if rank == victim => Ok(()),
        other => Err(format!("the victim said {other:?}").into()),
    }
}

/// Returns the number in the environment variable `name`.
pub(crate) fn asked_number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}

/// Runs one rank of a job that [`launch`] started; does nothing without a job.
#[test]
fn is_a_rank() {
    let Some(asked) = Asked::of_this_process() else { return };
    let words = asked.words().to_vec();
    let mine = words.first().is_some_and(|part| part == "scene") && asked.rank() == scenes::VICTIM;
    let fatal = words.get(2).filter(|_| mine).and_then(|point| point.parse().ok());
    let points = Arc::new(Points::new(fatal));
    asked.play(&async |fabric| play(fabric, words.clone(), points.clone()).await, || {
        mine.then(|| points.labels().join("\n"))
    });
}
