//! The reported and the observed properties of a provider: a column of a table of providers.

use crate::{CaseProgram, Harness, RankOutcome};
use fabric_offload::{
    ControlQueue,
    barrier::{ColourBarrier, GateUnit},
};
use rdma_fabric::{
    Amo, Atomics, Existing, Fabric, FabricError, Group, LockedMemory, Multicasts, ProgramResult, PutOrder, Rank,
    Refused, Region,
    op::{Atomic, Nop, Put},
};
use std::time::Duration;

/// The row headings, in the order in which [`look`] returns their contents.
const ROWS: [&str; 20] = [
    "put order before atomics",
    "puts to one target visible in the order posted (x86-64)",
    "third-party copies",
    "multicasts",
    "own loads and stores coherent with atomics",
    "atomics",
    "notice data, bits",
    "progress at a computing target",
    "blocking `wait` on handles",
    "registering memory that exists",
    "protected memory",
    "helpers, on a core of their own",
    "control queues, in session mode too",
    "barrier unit",
    "hardware barriers",
    "longest transfer that is not split, bytes",
    "an atomic is complete when it is posted",
    "time",
    "operations in an own queue",
    "notices that a target holds",
];

/// The number at which counting stops.
const MANY: u32 = 10_000;

/// Returns the reported and the observed properties of a provider, by row. One of its jobs is run
/// for `test`.
///
/// # Panics
/// If the job fails.
pub fn column<B: Harness>(test: &str) -> Vec<String> {
    let report = B::run(&CaseProgram::new(look), 2, test, 0).expect("processes come first, and go no further");
    let RankOutcome::Ended(told) = &report.outcomes[0] else { panic!("{report:?}") };
    let mut cells: Vec<String> = told.lines().map(str::to_owned).collect();
    assert_eq!(cells.len(), ROWS.len(), "{told}");
    let losses = B::LOSSES.iter().map(|loss| format!("{loss:?}").to_lowercase());
    cells.push(losses.collect::<Vec<_>>().join(", "));
    cells
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn at_most(found: u32) -> String {
    if found == MANY { format!("{MANY} and more") } else { found.to_string() }
}

/// Observes the behaviour of the provider. Rank 0 returns a line for each row.
async fn look(fabric: Fabric) -> ProgramResult<String> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let caps = fabric.caps();
    world.barrier().await?;
    let mut rows = vec![
        match caps.put_order {
            PutOrder::None => "none",
            PutOrder::SameTarget => "same target",
            PutOrder::AllTargets => "all targets",
        }
        .to_owned(),
        yes(caps.puts_in_order),
        if caps.third_party_copy { "yes" } else { "no: `Unsupported`" }.to_owned(),
        match caps.multicasts {
            Multicasts::None => "no: `Unsupported`",
            Multicasts::Software => "by software",
            Multicasts::Hardware => "in hardware",
        }
        .to_owned(),
        yes(caps.coherent_atomics),
        match caps.atomics {
            Atomics::None => "none",
            Atomics::Software => "by software",
            Atomics::Hardware => "in hardware",
        }
        .to_owned(),
        caps.notice_bits.to_string(),
        yes(caps.strong_progress),
    ];
    if fabric.rank() == Rank::new(0) {
        let peer = Rank::new(1);
        let word = fabric.remote_word::<u64>(region.at(peer, 0))?;
        let at_once = match fabric.post(Atomic { word: &word, amo: Amo::Add(1) }).await {
            Ok(mut atomic) => yes(atomic.test()),
            Err(FabricError::NoAtomics(_)) => "there are none".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let to = fabric.remote_span::<u64>(region.at(peer, 0), 1)?;
        let blocks = match fabric.post(Put { to: &to, from: [0], notice: None }).await?.wait() {
            Ok(_) => true,
            Err(FabricError::Unsupported { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if blocks != caps.blocking_wait {
            return Err("caps().blocking_wait does not tell what wait() does".into());
        }
        rows.push(if blocks { "yes" } else { "no: `Unsupported`" }.to_owned());
        rows.push(
            match caps.register_existing {
                Existing::None => "no",
                // Which of the two applies depends on the machine.
                Existing::CrossCopy | Existing::Staged => "cross copy or staged",
                Existing::Direct => "direct",
            }
            .to_owned(),
        );
        rows.push(
            match caps.locked_memory {
                LockedMemory::None => "none",
                LockedMemory::Copies => "by copies",
                LockedMemory::Mapped => "by copies and references",
            }
            .to_owned(),
        );
        rows.push(yes(caps.helpers && fabric.helper("one", |_| async { Ok(()) }).is_ok()));
        rows.push(
            match ControlQueue::limits(&fabric).engines {
                0 => "none",
                _ if caps.session_queues => "run by the (modelled) network interface",
                _ => "run by the ranks' CPUs",
            }
            .to_owned(),
        );
        let gates = GateUnit::of(&fabric).limits();
        rows.push(match gates.start_gates {
            0 => "none".to_owned(),
            starts => format!("{starts} start/end, {} relay gates", gates.relay_gates),
        });
        rows.push(match ColourBarrier::colours(&fabric) {
            0 => "none".to_owned(),
            colours => format!("{colours} colours"),
        });
        rows.push(if caps.max_transfer == u64::MAX { "any".into() } else { caps.max_transfer.to_string() });
        rows.push(at_once);
        let before = fabric.now();
        fabric.compute(Duration::from_secs(60)).await;
        let virtual_time = fabric.now() >= before + Duration::from_secs(60);
        rows.push(if virtual_time { "virtual" } else { "wall clock" }.to_owned());
        rows.push(at_most(own_room(&fabric)?));
        fabric.sleep(Duration::from_millis(1)).await;
        rows.push(at_most(notice_room(&fabric, peer, &region).await?));
    }
    world.barrier().await?;
    Ok(rows.join("\n"))
}

/// Counts operations posted until there is no room.
fn own_room(fabric: &Fabric) -> ProgramResult<u32> {
    for i in 0..MANY {
        match fabric.try_post(Nop) {
            Ok(handle) => drop(handle),
            Err(Refused::Full(_)) => return Ok(i),
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
    }
    Ok(MANY)
}

/// Counts the notices that fit at a rank that takes none. Room in this rank's own queue may become
/// free again.
async fn notice_room(fabric: &Fabric, peer: Rank, region: &Region) -> ProgramResult<u32> {
    let to = fabric.remote_span::<u64>(region.at(peer, 0), 1)?;
    let (mut count, mut vain) = (0, 0);
    while count < MANY && vain < 50 {
        match fabric.try_post(Put { to: &to, from: [0], notice: Some(1) }) {
            Ok(handle) => {
                handle.await?;
                (count, vain) = (count + 1, 0);
            }
            Err(Refused::Full(_)) => {
                fabric.sleep(Duration::from_millis(1)).await;
                vain += 1;
            }
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
    }
    Ok(count)
}

/// Returns a table with these named columns.
pub fn table(columns: &[(&str, Vec<String>)]) -> String {
    let mut table = String::from("| |");
    columns.iter().for_each(|(name, _)| table += &format!(" {name} |"));
    table += "\n|---|";
    columns.iter().for_each(|_| table += "---|");
    let rows = ROWS.iter().chain(&["ways to be lost that others notice"]);
    for (row, head) in rows.enumerate() {
        table += &format!("\n| {head} |");
        columns.iter().for_each(|(_, cells)| table += &format!(" {} |", cells[row]));
    }
    table.push('\n');
    table
}
