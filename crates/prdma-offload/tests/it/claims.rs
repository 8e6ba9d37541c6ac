//! The bytes of their buffers that requests claim, and the duration of the claims: for every
//! buffer, on both sides, from before a start reads the first byte until after a wait has written
//! the last one.

use crate::{FORMS, both, disturbed, fx100};
use checks::jobs::threads;
use core::{future::poll_fn, pin::pin};
use prdma_offload::{
    Buffer, Claims, Collectives, Edge, Form, Holder, Layout, Neighbourhood, Options, Point, PrdmaError, Request,
    Topology, exchange_init, points_init,
};
use rdma_fabric::{
    Fabric, Group, ProgramResult, RegionKey, forward, join,
    provider::{Place, Provider},
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

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

/// Buffers of a program, and whether each is lent while the CPU copies to or from it.
#[derive(Debug, Default)]
struct Watch {
    /// The sent buffer, and the received one.
    buffers: Mutex<Option<[Buffer<u64>; 2]>>,
    /// Set during the accesses of the watch itself.
    asks: AtomicBool,
    /// The number of copies by the CPU out of the sent buffer, and into the received one.
    copies: [AtomicUsize; 2],
}

impl Watch {
    fn keys(buffers: &[Buffer<u64>; 2]) -> [Option<RegionKey>; 2] {
        [buffers[0].key(), buffers[1].key()]
    }

    /// Called for each access by the CPU, on the given side.
    fn copies(&self, side: usize, place: &Place) {
        if self.asks.swap(true, SeqCst) {
            return;
        }
        if let Some(buffers) = &*self.buffers.lock().expect("no panic before")
            && Watch::keys(buffers)[side] == Some(place.addr().region)
        {
            self.copies[side].fetch_add(1, SeqCst);
            let at = place.addr().offset as usize / 8;
            let lent = buffers[side].view_mut(at..at + 1).map(drop);
            assert!(in_use(lent.clone()).is_some(), "element {at} is lent while it is copied: {lent:?}");
            let lent = buffers[side].view(at..at + 1).map(drop);
            assert_eq!(in_use(lent.clone()).is_some(), side == 1, "element {at} while it is copied: {lent:?}");
        }
        self.asks.store(false, SeqCst);
    }
}

/// A layer that calls a [`Watch`] whenever the CPU accesses its rank's memory.
#[derive(Debug)]
struct Layer {
    below: Fabric,
    watch: Arc<Watch>,
}

impl Provider for Layer {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, put, get, copy, atomic, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> rdma_fabric::Result<()> {
        self.watch.copies(0, from);
        self.below.provider().read(from, into, waiting)
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> rdma_fabric::Result<()> {
        self.watch.copies(1, to);
        self.below.provider().write(to, from, waited)
    }
}

/// Runs iterations of a request whose blocks the CPU copies, ended by a wait or by a test; returns
/// the number of copies.
async fn copied(fabric: Fabric, form: Form, by_test: bool, reduces: bool) -> ProgramResult<[usize; 2]> {
    const BLOCKS: usize = 4;
    let watch = Arc::new(Watch::default());
    let fabric = fabric.layered(Layer { below: fabric.clone(), watch: watch.clone() });
    let buffers = [Buffer::<u64>::new(&fabric, 2 * BLOCKS)?, Buffer::<u64>::new(&fabric, 2 * BLOCKS)?];
    let [send, receive] = buffers.clone();
    // More blocks than the network may gather and scatter.
    let options = Options { direct_blocks: 1, ..Options::form(form) };
    let strided = [Layout::vector::<u64>(0, BLOCKS, 1, 2)?];
    let edge = || [Some(Edge { member: 0, label: 0 })].into();
    let mut hood = Neighbourhood::new(Group::world(&fabric).await?, Topology::of(edge(), edge())).await?;
    let mut all = Collectives::new(Group::world(&fabric).await?).await?;
    let mut request = match reduces {
        true => all.allreduce_init(&send, &receive, 2 * BLOCKS, u64::max, &options).await?,
        false => hood.alltoallw_init(&send, &strided, &receive, &strided, &options).await?,
    };
    for round in 1..=3 {
        send.write(0, &[round; 2 * BLOCKS])?;
        *watch.buffers.lock().expect("no panic before") = Some(buffers.clone());
        request.start().await?;
        match by_test {
            true => {
                while !request.test().await? {
                    fabric.sleep(core::time::Duration::from_micros(1)).await;
                }
            }
            false => request.wait().await?,
        }
        watch.buffers.lock().expect("no panic before").take();
        assert_eq!(receive.to_vec()?[..1], [round]);
    }
    Ok([0, 1].map(|side| watch.copies[side].load(SeqCst)))
}

/// Buffers are lent neither before the first byte is packed nor after the last one is unpacked.
#[test]
fn what_the_cpu_copies_is_claimed_until_it_is_copied() {
    for form in FORMS {
        for (by_test, reduces) in [(false, false), (true, false), (false, true), (true, true)] {
            if reduces && matches!(form, Form::Queues(_)) {
                continue;
            }
            let program = async |fabric: Fabric| copied(fabric, form, by_test, reduces).await;
            for copies in [threads(1).run(&program).unwrap(), fx100(1).run(&program).unwrap().outs] {
                assert!(copies[0].iter().all(|side| *side >= 3), "{form}: copied {copies:?}");
            }
        }
    }
}

/// A start that is dropped half-way prevents its claimed bytes from being lent, on both sides, as
/// long as the request exists.
#[test]
fn a_start_that_is_dropped_keeps_its_claims() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 2, 2)?;
        let (sends, receives) = used.points();
        let mut group = Group::world(&fabric).await?;
        let mut request = exchange_init(&mut group, sends, receives, &Options::form(Form::Cpu)).await?;
        assert!(join::now(request.start()).is_none(), "a start takes time");
        assert!(matches!(request.wait().await, Err(PrdmaError::Broken(_))));
        for (at, buffer) in used.all().enumerate() {
            for block in BLOCKS {
                assert_eq!(in_use(buffer.view_mut(block..block + 1)), Some(Holder::Broken), "buffer {at}");
                let seen = in_use(buffer.view(block..block + 1));
                assert_eq!(seen, (at >= 2).then_some(Holder::Broken), "buffer {at}");
            }
        }
        drop(request);
        // Where a view is a copy, late arrivals do not affect it.
        used.are_free("a request that was dropped");
        Ok(())
    };
    disturbed(1, 30).run(&program).unwrap();
}

/// A request that is dropped while it is active keeps its bytes in each of its buffers.
#[test]
fn what_a_dropped_request_claims_is_never_lent_again() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 2, 2)?;
        let (sends, receives) = used.points();
        let mut group = Group::world(&fabric).await?;
        let mut request = exchange_init(&mut group, sends, receives, &Options::form(Form::Cpu)).await?;
        request.start().await?;
        used.are_claimed("active");
        drop(request);
        used.are_claimed("dropped");
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

/// Views end one by one, in any order, and each excludes uses until its own end.
#[test]
fn a_view_that_ends_ends_no_other() {
    let program = async |fabric: Fabric| {
        let field = Buffer::<u64>::in_place(&fabric, LEN)?;
        let parts = [0..2, 2..4, 4..6];
        for first in 0..parts.len() {
            for second in (0..parts.len()).filter(|second| *second != first) {
                let views = parts.each_ref().map(|part| field.view(part.clone()));
                let mut views = views.into_iter().map(|view| view.map(Some)).collect::<Result<Vec<_>, _>>()?;
                for ended in [first, second] {
                    views[ended] = None;
                    for (at, part) in parts.iter().enumerate() {
                        let holder = views[at].is_some().then_some(Holder::View);
                        assert_eq!(in_use(field.view_mut(part.clone())), holder, "{at} when {ended} has ended");
                        assert_eq!(in_use(field.write(part.start, &[1])), holder, "{at} when {ended} has ended");
                    }
                }
            }
        }
        Ok(())
    };
    both(1, &program);
}

/// An exchange without a request claims both its buffers until it is complete.
#[test]
fn a_transient_exchange_claims_its_buffers_until_its_end() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 1, 1)?;
        let (mut hood, cells) = (own_edges(&fabric).await?, cells());
        hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells).await?;
        let mut exchange = pin!(hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells));
        let mut polls = 0;
        // Virtual time passes between polls.
        poll_fn(|cx| {
            let poll = exchange.as_mut().poll(cx);
            if poll.is_pending() {
                polls += 1;
                used.are_claimed("a transient exchange");
            }
            poll
        })
        .await?;
        assert!(polls > 0, "it took no time");
        used.are_free("a transient exchange");
        Ok(())
    };
    fx100(1).run(&program).unwrap();
}
