//! The bytes of their buffers that requests claim, and the duration of the claims: for every
//! buffer, on both sides, from before a start reads the first byte until after a wait has written
//! the last one.

mod copies;
mod lifetime;

use crate::{FORMS, both};
use prdma_offload::{
    Buffer, Claims, Edge, Form, Holder, Layout, Neighbourhood, Options, Point, PrdmaError, Request, Topology,
    exchange_init, points_init,
};
use rdma_fabric::{Fabric, Group, ProgramResult};

fn in_use<T>(got: Result<T, PrdmaError>) -> Option<Holder> {
    match got {
        Err(PrdmaError::InUse { holder, .. }) => Some(holder),
        _ => None,
    }
}

/// Elements of each buffer; blocks are its second and its last but one.
const LEN: usize = 6;

const BLOCKS: [usize; 2] = [1, 4];

fn cell(at: usize) -> Layout {
    Layout::contiguous::<u64>(at, 1).expect("a cell")
}

fn cells() -> [Layout; 2] {
    BLOCKS.map(cell)
}

/// The buffers of a communication.
struct Used {
    sent: Vec<Buffer<u64>>,
    received: Vec<Buffer<u64>>,
}

impl Used {
    fn new(fabric: &Fabric, sent: usize, received: usize) -> prdma_offload::Result<Self> {
        let buffers = |many| (0..many).map(|_| Buffer::in_place(fabric, LEN)).collect::<Result<_, _>>();
        Ok(Used { sent: buffers(sent)?, received: buffers(received)? })
    }

    /// Returns the points of one message from each sent buffer to each received one, to the rank
    /// itself, by both blocks.
    fn points(&self) -> (Vec<Point>, Vec<Point>) {
        let points = |buffers: &[Buffer<u64>]| {
            let points = buffers.iter().enumerate().flat_map(|(tag, buffer)| {
                BLOCKS.iter().enumerate().map(move |(nth, at)| Point::new(0, (2 * tag + nth) as u32, buffer, cell(*at)))
            });
            points.collect::<Vec<_>>()
        };
        (points(&self.sent), points(&self.received))
    }

    fn all(&self) -> impl Iterator<Item = &Buffer<u64>> {
        self.sent.iter().chain(&self.received)
    }

    /// Checks that all of every buffer is lent.
    #[track_caller]
    fn are_free(&self, what: &str) {
        for (at, buffer) in self.all().enumerate() {
            assert!(buffer.view_mut(0..LEN).is_ok(), "{what}: buffer {at}");
            assert!(buffer.write(0, &[0]).is_ok(), "{what}: buffer {at}");
        }
    }

    /// Checks that each block is in use, and no other bytes are.
    #[track_caller]
    fn are_claimed(&self, what: &str) {
        for (at, buffer) in self.sent.iter().enumerate() {
            for block in BLOCKS {
                let (mut view, write) = (in_use(buffer.view_mut(block..block + 1)), in_use(buffer.write(block, &[7])));
                assert_eq!([view.take(), write], [Some(Holder::Sender); 2], "{what}: sent buffer {at}, block {block}");
                assert!(buffer.view(block..block + 1).is_ok() && buffer.read(block, &mut [0]).is_ok(), "{what}: {at}");
            }
        }
        for (at, buffer) in self.received.iter().enumerate() {
            for block in BLOCKS {
                let views = [
                    in_use(buffer.view(block..block + 1)),
                    in_use(buffer.view_mut(block..block + 1)),
                    in_use(buffer.read(block, &mut [0])),
                    in_use(buffer.write(block, &[7])),
                ];
                assert_eq!(views, [Some(Holder::Receiver); 4], "{what}: received buffer {at}, block {block}");
            }
        }
        for buffer in self.all() {
            assert!([0..1, 2..4, 5..6].into_iter().all(|beside| buffer.view_mut(beside).is_ok()), "{what}");
        }
    }
}

/// A communication that is started, and claims buffers until it is waited for.
enum Communication<'a> {
    One(Box<Request>),
    /// Claims of a protocol of the program.
    Own(&'a Claims),
}

impl Communication<'_> {
    async fn start(&mut self) -> prdma_offload::Result<()> {
        match self {
            Communication::One(request) => request.start().await,
            Communication::Own(claims) => claims.begin(),
        }
    }

    async fn end(&mut self) -> prdma_offload::Result<()> {
        match self {
            Communication::One(request) => request.wait().await,
            Communication::Own(claims) => {
                claims.end();
                Ok(())
            }
        }
    }

    /// Tries to start while a conflicting view of one buffer exists, for each buffer in turn; then
    /// starts and ends.
    async fn meets(&mut self, used: &Used, what: &str) -> ProgramResult<()> {
        for round in 0..2 {
            for (at, buffer) in used.all().enumerate() {
                for block in BLOCKS {
                    let written = buffer.view_mut(block..block + 1)?;
                    assert_eq!(in_use(self.start().await), Some(Holder::ViewMut), "{what}: buffer {at}, {block}");
                    drop(written);
                    used.are_free(what);
                    let read = buffer.view(block..block + 1)?;
                    if at >= used.sent.len() {
                        assert_eq!(in_use(self.start().await), Some(Holder::View), "{what}: buffer {at}, {block}");
                        drop(read);
                        used.are_free(what);
                    } else {
                        // Sent bytes may be read.
                        self.start().await?;
                        drop(read);
                        self.end().await?;
                    }
                }
            }
            used.are_free(what);
            self.start().await?;
            used.are_claimed(&format!("{what}, round {round}"));
            self.end().await?;
            used.are_free(what);
        }
        Ok(())
    }
}

/// Exchanges with the rank itself, with all numbers of buffers, in conflict with views.
async fn meeting(fabric: Fabric) -> ProgramResult<()> {
    let mut group = Group::world(&fabric).await?;
    for form in FORMS {
        for buffers in 1..=3 {
            let used = Used::new(&fabric, buffers, buffers)?;
            let (sends, receives) = used.points();
            let request = exchange_init(&mut group, sends, receives, &Options::form(form)).await?;
            let what = format!("{form}, {buffers} buffers each way");
            Communication::One(Box::new(request)).meets(&used, &what).await?;
            let (sends, receives) = used.points();
            Communication::Own(&Claims::new(&sends, &receives)).meets(&used, "claims").await?;
        }
        // Two buffers, by the slots of a neighbourhood.
        let used = Used::new(&fabric, 1, 1)?;
        let mut hood = own_edges(&fabric).await?;
        let (cells, options) = (cells(), Options::form(form));
        let request = hood.alltoallw_init(&used.sent[0], &cells, &used.received[0], &cells, &options).await?;
        Communication::One(Box::new(request)).meets(&used, &format!("{form}, a neighbourhood")).await?;
        for (at, buffer) in used.all().enumerate() {
            let view = buffer.view_mut(4..5)?;
            let refused = hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells).await;
            assert_eq!(in_use(refused), Some(Holder::ViewMut), "buffer {at}");
            drop(view);
            used.are_free("a transient exchange");
        }
        hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells).await?;
        used.are_free("a transient exchange");
    }
    Ok(())
}

/// A member with two edges to itself.
async fn own_edges(fabric: &Fabric) -> prdma_offload::Result<Neighbourhood> {
    let edges = || [0, 1].map(|label| Some(Edge { member: 0, label })).into();
    Neighbourhood::new(Group::world(fabric).await?, Topology::of(edges(), edges())).await
}

#[test]
fn a_start_looks_at_the_views_of_every_buffer_and_claims_every_buffer() {
    both(1, &meeting);
}

/// Each point has a separate claim.
async fn by_themselves(fabric: Fabric) -> ProgramResult<()> {
    let mut group = Group::world(&fabric).await?;
    for form in FORMS {
        let used = Used::new(&fabric, 2, 2)?;
        let (sends, receives) = used.points();
        let (mut sends, mut receives) = points_init(&mut group, sends, receives, &Options::form(form)).await?;
        let block = |nth: usize| BLOCKS[nth % 2]..BLOCKS[nth % 2] + 1;
        for nth in 0..4 {
            let (sent, received) = (&used.sent[nth / 2], &used.received[nth / 2]);
            let view = received.view(block(nth))?;
            assert_eq!(in_use(receives[nth].start().await), Some(Holder::View), "{form}: point {nth}");
            drop(view);
            receives[nth].start().await?;
            sends[nth].start().await?;
            for other in 0..4 {
                let of = |buffers: &[Buffer<u64>]| in_use(buffers[other / 2].view_mut(block(other)));
                let expected = |holder| (other == nth).then_some(holder);
                let found = [of(&used.sent), of(&used.received)];
                assert_eq!(found, [expected(Holder::Sender), expected(Holder::Receiver)], "{form}: {other} of {nth}");
            }
            receives[nth].wait().await?;
            assert!(received.view_mut(block(nth)).is_ok(), "{form}: point {nth}");
            assert_eq!(in_use(sent.view_mut(block(nth))), Some(Holder::Sender), "{form}: point {nth}");
            sends[nth].wait().await?;
            used.are_free("points");
        }
    }
    Ok(())
}

#[test]
fn points_claim_their_own_blocks() {
    both(1, &by_themselves);
}

/// Each partition has a separate claim, which ends when it has arrived.
async fn partitions(fabric: Fabric, form: Form) -> ProgramResult<()> {
    const EACH: usize = 3;
    let mut hood = own_edges(&fabric).await?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 2 * EACH)?, Buffer::<u64>::new(&fabric, 2 * EACH)?);
    let rows = [0, 1].map(|slot| Layout::contiguous::<u64>(slot * EACH, EACH).expect("a row"));
    let mut parts = hood.partitioned_init(&send, &rows, &receive, &rows, EACH, &Options::form(form)).await?;
    for at in 0..2 * EACH {
        let what = format!("{form}: element {at}");
        let view = receive.view(at..at + 1)?;
        assert_eq!(in_use(parts.start().await), Some(Holder::View), "{what}");
        drop(view);
        assert!(receive.view_mut(0..2 * EACH).is_ok(), "{what}");
        parts.start().await?;
        for other in 0..2 * EACH {
            assert_eq!(in_use(receive.view(other..other + 1)), Some(Holder::Receiver), "{what}: {other}");
            assert!(send.view_mut(other..other + 1).is_ok(), "{what}: {other}");
        }
        let (slot, view) = (at / EACH, send.view_mut(at..at + 1)?);
        assert_eq!(in_use(parts.ready_range(slot, 0..EACH).await), Some(Holder::ViewMut), "{what}");
        drop(view);
        assert!(send.view_mut(slot * EACH..(slot + 1) * EACH).is_ok(), "{what}: none of them is marked");
        parts.ready(slot, at % EACH).await?;
        for other in 0..2 * EACH {
            let expected = (other == at).then_some(Holder::Sender);
            assert_eq!(in_use(send.view_mut(other..other + 1)), expected, "{what}: {other}");
        }
        while !parts.arrived(slot, at % EACH).await? {
            fabric.sleep(core::time::Duration::from_micros(1)).await;
        }
        for other in 0..2 * EACH {
            let expected = (other != at).then_some(Holder::Receiver);
            assert_eq!(in_use(receive.view_mut(other..other + 1)), expected, "{what}: {other}");
        }
        for other in (0..2 * EACH).filter(|other| *other != at) {
            parts.ready(other / EACH, other % EACH).await?;
        }
        parts.wait().await?;
        assert!(receive.view_mut(0..2 * EACH).is_ok() && send.view_mut(0..2 * EACH).is_ok(), "{what}");
    }
    Ok(())
}

#[test]
fn partitions_claim_their_own_elements() {
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        both(1, &async |fabric: Fabric| partitions(fabric, form).await);
    }
}
