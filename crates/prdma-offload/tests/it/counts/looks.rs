//! The number of reads of local words in a call: a test of exchanges without queues reads each word
//! once.

use crate::fx100;
use explore::mutant::{Mutant, mutated};
use prdma_offload::{Buffer, Cartesian, Form, Layout, Neighbourhood, Options};
use rdma_fabric::{Fabric, Group, ProgramResult, RemoteAddr};
use std::{cell::Cell, rc::Rc, time::Duration};

/// Counts reads of local words.
#[derive(Clone, Debug, Default)]
struct Looks(Rc<Cell<u64>>);

impl Mutant for Looks {
    fn seen(&self, _: RemoteAddr, bits: u64) -> u64 {
        self.0.set(self.0.get() + 1);
        bits
    }
}

const PARTITIONS: usize = 3;

/// Returns the reads of one test of an exchange with two edges each way, while no member is ready
/// and another such exchange is in flight. In partitions, if `parts`.
async fn tested(fabric: Fabric, parts: bool) -> ProgramResult<u64> {
    let looks = Looks::default();
    let count = || looks.0.take();
    let fabric = mutated(fabric, looks.clone());
    let group = Group::world(&fabric).await?;
    let (me, topology) = (group.me(), Cartesian::new(&[2], &[true])?.topology(group.me()));
    let mut hood = Neighbourhood::new(group, topology).await?;
    let buffer = || Buffer::<u64>::new(&fabric, 2 * PARTITIONS);
    let (send, one, two) = (buffer()?, buffer()?, buffer()?);
    let options = Options::form(Form::Cpu);
    let block = |slot| Layout::contiguous::<u64>(slot * PARTITIONS, PARTITIONS);
    let blocks = [block(0)?, block(1)?];
    let mut beside = hood.alltoallw_init(&send, &blocks, &one, &blocks, &options).await?;
    let mut whole = hood.alltoallw_init(&send, &blocks, &two, &blocks, &options).await?;
    let mut cut = hood.partitioned_init(&send, &blocks, &two, &blocks, PARTITIONS, &options).await?;
    if me == 1 {
        hood.group_mut().barrier().await?;
    }
    beside.start().await?;
    if parts {
        cut.start().await?;
        for slot in [0, 1] {
            cut.ready_range(slot, 0..PARTITIONS).await?;
        }
    } else {
        whole.start().await?;
    }
    count();
    let mut looked = 0;
    if me == 0 {
        let over = if parts { cut.test().await? } else { whole.test().await? };
        assert!(!over, "nobody is ready");
        looked = count();
        hood.group_mut().barrier().await?;
    }
    if parts {
        cut.wait().await?
    } else {
        whole.wait().await?
    }
    beside.wait().await?;
    hood.group_mut().barrier().await?;
    Ok(looked)
}

/// One for the READY of each neighbour, or of each partition, and one for that of the other
/// exchange. `advance`, followed by a check of this rank's puts, took 6 and 14.
#[test]
fn a_test_looks_once_at_each_put() {
    let looks = |parts| fx100(2).run(&async |fabric| tested(fabric, parts).await).expect("nothing goes wrong").outs[0];
    assert_eq!((looks(false), looks(true)), (1 + 1, 2 * PARTITIONS as u64 + 1));
}

/// Rank 0 waits only for the end of an exchange that rank 1 starts after another exchange, executed
/// by CPUs, has ended at rank 1.
async fn carried_on(fabric: Fabric, form: Form, parts: bool) -> ProgramResult<()> {
    let group = Group::world(&fabric).await?;
    let (me, topology) = (group.me(), Cartesian::new(&[2], &[true])?.topology(group.me()));
    let mut hood = Neighbourhood::new(group, topology).await?;
    let (send, one, two) = (Buffer::<u64>::new(&fabric, 2)?, Buffer::new(&fabric, 2)?, Buffer::new(&fabric, 2)?);
    let blocks = [Layout::contiguous::<u64>(0, 1)?, Layout::contiguous::<u64>(1, 1)?];
    let mut beside = hood.alltoall_init(&send, &one, 1, &Options::form(Form::Cpu)).await?;
    let mut whole = hood.alltoall_init(&send, &two, 1, &Options::form(form)).await?;
    let mut cut = hood.partitioned_init(&send, &blocks, &two, &blocks, 1, &Options::form(form)).await?;
    assert_eq!((whole.form(), cut.form()), (form, form));
    beside.start().await?;
    if me == 1 {
        beside.wait().await?;
    }
    if parts {
        cut.start().await?;
        cut.ready(0, 0).await?;
        cut.ready(1, 0).await?;
    } else {
        whole.start().await?;
    }
    let mut looks = 0;
    while !(if parts { cut.test().await? } else { whole.test().await? }) {
        looks += 1;
        assert!(looks < 1000, "rank {me}: a test of {form} leaves the other exchange alone");
        fabric.sleep(Duration::from_micros(1)).await;
    }
    beside.wait().await?;
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn a_test_carries_on_what_else_is_armed() {
    for (form, parts) in [Form::Fast, Form::Mrc, Form::Cpu].iter().flat_map(|form| [(*form, false), (*form, true)]) {
        fx100(2).run(&async |fabric| carried_on(fabric, form, parts).await).expect("nothing goes wrong");
    }
}
