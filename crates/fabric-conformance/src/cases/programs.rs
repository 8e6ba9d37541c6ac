//! Programs of control queues: commands that are posted together again and again.

use super::fixture::Fixture;
use crate::ensure_eq;
use fabric_offload::control_queue::{
    Command, ExpectedReports, Inline, MrqKind, NumberIn, Posting, ProgramCommand, QueueMode, QueueSpec,
};
use rdma_fabric::{Deps, Fabric, ProgramResult};

/// Each repetition puts its number into a word of the next rank, with a notice, and releases itself.
pub(super) async fn repeated_programs(fabric: Fabric) -> ProgramResult<()> {
    /// More than fit into the ring.
    const REPETITIONS: u64 = 20;
    let spec = QueueSpec::new(QueueMode::Session).ahead(2).depth(16);
    let Some(mut fixture) = Fixture::open(fabric, spec, 256).await? else { return Ok(()) };
    let to = fixture.next();
    let put = |word, at| Command::PutInline { to, bytes: Inline::word(word), at };
    let commands = [
        ProgramCommand { posting: Posting::new(put(0, fixture.at)).strong_order(), number: NumberIn::Word },
        ProgramCommand {
            posting: Posting::new(put(7, fixture.at + 64)).strong_order().remote(0).sps(2).tcq(5),
            number: NumberIn::Edata,
        },
    ];
    fixture.world.barrier().await?;
    let program = fixture.queue.prepare(commands);
    for number in 1..=REPETITIONS {
        fixture.queue.post_program(&program, number, Deps::All).await?;
        let mut expected = ExpectedReports { edata: number as u8, notices: 1, completions: 1 };
        fixture.queue.take_expected(&mut expected, true);
        if expected.notices > 0 {
            let notice = fixture.queue.next_notice(Deps::All).await?;
            ensure_eq!((notice.kind, notice.edata, notice.status), (MrqKind::RemotePut, number as u8, Ok(())), "Q12");
        }
        if expected.completions > 0 {
            let completion = fixture.queue.next_completion(Deps::All).await?;
            ensure_eq!((completion.tag, completion.status), (5, Ok(())), "Q12: completion {number}");
        }
        ensure_eq!([fixture.word(0)?, fixture.word(64)?], [number, 7], "Q12: repetition {number}");
        // So that no rank overwrites a word that its neighbour has not compared.
        fixture.world.barrier().await?;
    }
    let mut expected = ExpectedReports { edata: 0, notices: 1, completions: 1 };
    fixture.queue.take_expected(&mut expected, false);
    ensure_eq!((expected.notices, expected.completions), (1, 1), "Q12: nothing is left");
    fixture.leave().await
}
