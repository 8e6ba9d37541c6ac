//! Claims of buffers that the CPU copies to and from.

use super::in_use;
use crate::{FORMS, fx100};
use checks::jobs::threads;
use prdma_offload::{Buffer, Collectives, Edge, Form, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::{
    Fabric, Group, ProgramResult, RegionKey, forward,
    provider::{Place, Provider},
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

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
fn bytes_copied_by_the_cpu_are_claimed_until_then() {
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
