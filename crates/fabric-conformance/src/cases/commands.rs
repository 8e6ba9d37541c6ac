//! Commands of control queues, and the notices that they cause.

use super::fixture::{Fixture, TAG, queue_error};
use super::queues::NORMAL;
use crate::{ensure, ensure_eq};
use fabric_offload::{
    ControlQueue,
    control_queue::{Blocks, Command, Inline, MrqKind, Posting, QueueError, QueueId, Stadd, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Result};

/// Returns an inline put of `value`.
pub(super) fn inline(to: QueueId, at: Stadd, value: u64) -> Command {
    Command::PutInline { to, bytes: Inline::word(value), at }
}

/// Rank 0 issues every command to rank 1, which receives the remote notices.
pub(super) async fn every_command_and_its_notices(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, NORMAL, 4096).await? else { return Ok(()) };
    let mut fixture = fixture;
    let (me, at, to) = (fixture.me(), fixture.at, fixture.next());
    for i in 0..512 {
        fixture.set(8 * i, if me == 1 { 1000 + i as u64 } else { i as u64 })?;
    }
    fixture.world.barrier().await?;
    let blocks = Blocks { count: 3, stride: 64 };
    let armw = |op| Command::Atomic { to, at: at + 1024, width: Width::Eight, amo: op };
    let atomics = fixture.has_atomics()?;
    let mut commands: Vec<(Command, MrqKind, u64)> = vec![
        (Command::put(to, at, at, 96), MrqKind::LocalPut, 96),
        (
            Command::PutInline { to, bytes: Inline::new(&[9; 5]).ok_or("5 bytes")?, at: at + 128 },
            MrqKind::LocalPut,
            133,
        ),
        (
            Command::PutInline { to, bytes: Inline::new(&[8; 32]).ok_or("32 bytes")?, at: at + 160 },
            MrqKind::LocalPut,
            192,
        ),
        (Command::put(to, at, at + 200, 0), MrqKind::LocalPut, 200),
        (Command::Put { to, from: at + 512, at: at + 512, len: 8, blocks }, MrqKind::LocalPut, 520),
        (Command::get(to, at + 2048, at + 2048, 100), MrqKind::LocalGet, 2148),
        (armw(Amo::Add(5)), MrqKind::LocalAtomic, 1128),
        (armw(Amo::Swap(0xff00)), MrqKind::LocalAtomic, 1133),
        (armw(Amo::Or(0xf)), MrqKind::LocalAtomic, 0xff00),
        (armw(Amo::And(0xf0f)), MrqKind::LocalAtomic, 0xff0f),
        (armw(Amo::Xor(0xf)), MrqKind::LocalAtomic, 0xf0f),
        (
            Command::Atomic {
                to,
                at: at + 1024,
                width: Width::Eight,
                amo: Amo::CompareSwap { expected: 0xf00, new: 1 << 40 },
            },
            MrqKind::LocalAtomic,
            0xf00,
        ),
    ];
    commands.retain(|(_, kind, _)| atomics || *kind != MrqKind::LocalAtomic);
    if me == 0 {
        for (number, (command, kind, wanted)) in commands.into_iter().enumerate() {
            let notices = command.commands();
            let posting = Posting::new(command).local(number as u8).remote(number as u8).tcq(number as u64);
            fixture.queue.post(posting, Deps::All).await?;
            for block in 0..u64::from(notices) {
                let notice = fixture.queue.next_notice(Deps::All).await?;
                let about = format!("Q3: command {number}, {command:?}: {notice:?}");
                ensure_eq!((notice.kind, notice.peer, notice.edata), (kind, to, number as u8), "{about}");
                ensure_eq!(notice.status, Ok(()), "{about}");
                let (have, want) = match kind {
                    MrqKind::LocalPut => (notice.remote.to_bits(), (at + wanted + 64 * block).to_bits()),
                    MrqKind::LocalGet => (notice.local.to_bits(), (at + wanted).to_bits()),
                    _ => (notice.value, wanted),
                };
                ensure_eq!(have, want, "{about}");
                ensure_eq!(fixture.queue.next_completion(Deps::All).await?.tag, number as u64, "Q2: {about}");
            }
        }
        if atomics {
            let amo = Amo::CompareSwap { expected: 0, new: 7 };
            let narrow = Command::Atomic { to, at: at + 1036, width: Width::Four, amo };
            let notice = fixture.acknowledged(&fixture.queue, narrow.into()).await?;
            ensure_eq!((notice.value, notice.remote), (0, at + 1036), "Q3: four bytes");
        }
        // A nop reports in the TCQ only.
        fixture.queue.post(Posting::new(Command::Nop).tcq(99).local(9).remote(9), Deps::All).await?;
        ensure_eq!(fixture.queue.next_completion(Deps::All).await?.tag, 99, "Q3: a nop");
        fixture.settle().await;
        ensure_eq!(fixture.queue.poll_mrq()?, None, "Q3: a nop's notice");
        ensure_eq!(fixture.word(2048)?, 1256, "Q3: bytes of the get");
    } else if me == 1 {
        let from = fixture.ids[0];
        for (number, (command, kind, _)) in commands.into_iter().enumerate() {
            for block in 0..u64::from(command.commands()) {
                let notice = fixture.queue.next_notice(Deps::All).await?;
                let about = format!("Q3: notice {number} of {command:?}: {notice:?}");
                ensure_eq!((notice.peer, notice.edata), (from, number as u8), "{about}");
                let (want, end) = match (kind, command) {
                    (MrqKind::LocalGet, _) => (MrqKind::RemoteGet, at + 2148),
                    (MrqKind::LocalPut, Command::Put { at, len, .. }) => {
                        (MrqKind::RemotePut, at + u64::from(len) + 64 * block)
                    }
                    (MrqKind::LocalPut, Command::PutInline { at, bytes, .. }) => {
                        (MrqKind::RemotePut, at + bytes.as_bytes().len() as u64)
                    }
                    _ => (MrqKind::RemoteAtomic, at + 1024),
                };
                ensure_eq!((notice.kind, notice.remote), (want, end), "{about}");
            }
        }
        ensure_eq!([0, 88, 96].map(|i| fixture.word(i).ok()), [Some(0), Some(11), Some(1012)], "Q3: bytes of the put");
        ensure_eq!(fixture.word(128)?.to_le_bytes()[..5], [9u8; 5], "Q3: inline bytes");
        ensure_eq!(fixture.word(184)?, 0x0808_0808_0808_0808, "Q3: 32 inline bytes");
        ensure_eq!([512, 520, 576, 640].map(|i| fixture.word(i).ok()), [64, 1065, 72, 80].map(Some), "Q3: blocks");
    }
    fixture.world.barrier().await?;
    if me == 1 && atomics {
        ensure_eq!(fixture.word(1024)?, 1 << 40, "Q3: the word after all atomics");
    }
    fixture.leave().await
}

pub(super) async fn steering_tags(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, NORMAL, 256).await? else { return Ok(()) };
    let (queue, to) = (&fixture.queue, fixture.own());
    let other = fixture.fabric.alloc(128)?;
    let auto = queue.register(&other)?;
    ensure!(auto.tag() >= Stadd::FIRST_AUTOMATIC, "Q5: an automatic tag is {auto}");
    ensure_eq!(queue.register(&other)?, auto, "Q5: the same region again");
    ensure_eq!(fixture.at, Stadd::fixed(TAG), "Q5: a fixed tag's address");
    let taken = queue.register_fixed(&other, TAG).err();
    ensure_eq!(taken, Some(QueueError::TagInUse { queue: to, tag: TAG }.into()), "Q5: a fixed tag twice");
    // The outcome of a put: success, or an error at its poster (in the completion) or at its target
    // (in the notice).
    let ends = async |from, at, len| -> Result<Result<(), (&str, QueueError)>> {
        queue.post(Posting::new(Command::put(to, from, at, len)).tcq(5).local(5), Deps::All).await?;
        if let Err(error) = queue.next_completion(Deps::All).await?.status {
            return Ok(Err(("here", error)));
        }
        Ok(queue.next_notice(Deps::All).await?.status.map_err(|error| ("there", error)))
    };
    // An address belongs to one queue only.
    let foreign = fixture.sender.register_fixed(&other, TAG + 1)?;
    if !ControlQueue::limits(&fixture.fabric).shared_address_space {
        let unknown = QueueError::NoSuchTag { queue: to, stadd: foreign };
        ensure_eq!(ends(foreign, fixture.at, 8).await?, Err(("here", unknown)), "Q5: another queue's tag, from here");
        ensure_eq!(ends(fixture.at, foreign, 8).await?, Err(("there", unknown)), "Q5: another queue's tag, there");
    }
    // Bounds, on both sides of a put.
    fixture.set(0, 77)?;
    ensure_eq!(ends(fixture.at, auto + 120, 8).await?, Ok(()), "Q5: the last bytes");
    ensure_eq!(fixture.fabric.load(&other.word::<u64>(&fixture.fabric, 120)?)?, 77, "Q5: what lies there");
    let outside = QueueError::OutOfBounds { queue: to, stadd: auto + 121, len: 8, registered: 128 };
    ensure_eq!(ends(fixture.at, auto + 121, 8).await?, Err(("there", outside)), "Q5: one byte further");
    ensure_eq!(ends(auto + 121, fixture.at, 8).await?, Err(("here", outside)), "Q5: from one byte further");
    if fixture.has_atomics()? {
        let odd = Command::Atomic { to, at: auto + 4, width: Width::Eight, amo: Amo::Add(1) };
        let end = fixture.acknowledged(queue, odd.into()).await?.status;
        ensure_eq!(end, Err(QueueError::Misaligned { queue: to, stadd: auto + 4, width: 8 }), "Q5: alignment");
    }
    queue.set_read_only(auto, true)?;
    let read_only = QueueError::ReadOnly { queue: to, stadd: auto };
    ensure_eq!(ends(fixture.at, auto, 8).await?, Err(("there", read_only)), "Q5: a put to read-only memory");
    queue.set_read_only(auto, false)?;
    // An error for which no notice was requested is reported once.
    queue.post(Command::put(to, fixture.at, auto + 128, 1).into(), Deps::All).await?;
    fixture.settle().await;
    let kept = queue.poll_tcq().err();
    ensure!(
        matches!(queue_error(&kept), Some(QueueError::OutOfBounds { .. })),
        "Q6: an error without notice: {kept:?}"
    );
    ensure_eq!(queue.poll_tcq()?, None, "Q6: told twice");
    // Dropping a region makes its addresses stale; deregistering a tag leaves the region alone.
    drop(other);
    let stale = QueueError::Stale { queue: to, stadd: auto };
    ensure_eq!(ends(fixture.at, auto, 8).await?, Err(("there", stale)), "Q5: a dropped region");
    queue.deregister(auto)?;
    let unknown = QueueError::NoSuchTag { queue: to, stadd: auto };
    ensure_eq!(ends(fixture.at, auto, 8).await?, Err(("there", unknown)), "Q5: a tag that was given back");
    let twice = queue.deregister(auto).err();
    ensure_eq!(twice, Some(QueueError::NoSuchTag { queue: to, stadd: auto }.into()), "Q5: given back twice");
    ensure_eq!(fixture.word(0)?, 77, "Q5: the region itself");
    fixture.leave().await
}
