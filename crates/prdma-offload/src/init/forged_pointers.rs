//! Guarded requests whose members are misdirected, step by step. Any rank of a job could do this,
//! because all ranks can write the words with the locations of tables.

use super::{
    Handles, all_succeed,
    guard::{Seal, first_number},
    terms::Terms,
};
use crate::{
    Buffer, Edge, Form, Layout, Neighbourhood, Options, PrdmaError, Request, Result, Topology, engine::CpuContact,
};
use checks::jobs::threads;
use core::{future::poll_fn, pin::Pin, pin::pin, task::Poll, time::Duration};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, Region};
use std::sync::{
    Barrier,
    atomic::{AtomicBool, Ordering::SeqCst},
};

/// Two ranks that take turns.
struct Turns {
    meet: Barrier,
    over: [AtomicBool; 2],
    stopped: AtomicBool,
}

impl Turns {
    fn new() -> Self {
        Turns { meet: Barrier::new(2), over: Default::default(), stopped: AtomicBool::new(false) }
    }

    /// Polls the future of each rank in turn. After a turn of rank 1, calls `then` there; stops if it
    /// returns `true`.
    async fn take<T>(
        &self,
        me: usize,
        future: &mut Pin<&mut impl Future<Output = T>>,
        mut then: impl FnMut() -> bool,
    ) -> Option<T> {
        let mut out = None;
        self.meet.wait();
        if me == 0 {
            self.stopped.store(false, SeqCst);
            self.over.iter().for_each(|over| over.store(false, SeqCst));
        }
        self.meet.wait();
        while !self.stopped.load(SeqCst) && !self.over.iter().all(|over| over.load(SeqCst)) {
            self.meet.wait();
            for whose in [0, 1] {
                if whose == me && out.is_none() {
                    out = poll_fn(|cx| match future.as_mut().poll(cx) {
                        Poll::Ready(ended) => Poll::Ready(Some(ended)),
                        Poll::Pending => Poll::Ready(None),
                    })
                    .await;
                    self.over[me].store(out.is_some(), SeqCst);
                    if me == 1 && then() {
                        self.stopped.store(true, SeqCst);
                    }
                }
                self.meet.wait();
            }
        }
        out
    }
}

/// The word of the rank's own header that holds the key of its table.
struct Header<'a> {
    fabric: &'a Fabric,
    hood: rdma_fabric::LocalWord<u64>,
    last: u64,
    /// The number of changes.
    tables: u32,
}

impl<'a> Header<'a> {
    fn new(fabric: &'a Fabric, hood: &Neighbourhood) -> ProgramResult<Self> {
        let hood = fabric.local_word(hood.headers.at(fabric.rank(), 0)?)?;
        let last = fabric.load(&hood)?;
        Ok(Header { fabric, hood, last, tables: 0 })
    }

    /// Returns the key of table `nth`, counted from 1, once it is published.
    fn is_published(&mut self, nth: u32) -> Option<u64> {
        let key = self.fabric.load(&self.hood).expect("the own header");
        let is_new = key != self.last;
        (self.last, self.tables) = (key, self.tables + u32::from(is_new));
        (is_new && self.tables == nth).then_some(key)
    }

    fn lead_to(&mut self, key: u64) {
        self.fabric.store(&self.hood, key).expect("the own header");
        self.last = key;
    }
}

/// A pair that exchanges one element.
async fn pair(fabric: &Fabric) -> ProgramResult<Neighbourhood> {
    let group = Group::world(fabric).await?;
    let other = Some(Edge { member: 1 - group.me(), label: 0 });
    Ok(Neighbourhood::new(group, Topology::of([other].into(), [other].into())).await?)
}

async fn request(hood: &mut Neighbourhood, field: &Buffer<u64>, at: usize) -> Result<Request> {
    let cell = |at| Layout::contiguous::<u64>(at, 1).expect("a cell");
    hood.alltoallw_init(field, &[cell(0)], field, &[cell(at)], &Options::form(Form::Cpu)).await
}

/// The destination to which rank 1's header is changed.
#[derive(Clone, Copy, Debug)]
enum To {
    /// A table of this kind, from a request that is still being created: 1 for terms, 2 for
    /// contacts.
    Earlier(u32),
    /// Such a table from a request that was abandoned.
    GivenUp(u32),
    /// Memory of this rank that looks like a table of this kind, with a key.
    Open(u64),
    /// Words of a request that look like a table of this kind.
    Words(u64),
}

/// Creates memory with `kind` at the position of a table's kind, and one record of zeros.
fn imitation(fabric: &Fabric, kind: u64) -> Result<Region> {
    let region = fabric.alloc(1024)?;
    fabric.store(&region.word(fabric, 8)?, 1u64)?;
    fabric.store(&region.word(fabric, 0)?, kind)?;
    Ok(region)
}

/// Makes a request with a misdirected header of rank 1 at its table `nth`; returns the error.
async fn misled(fabric: Fabric, turns: &Turns, nth: u32, to: To) -> ProgramResult<Option<PrdmaError>> {
    let me = fabric.rank().index();
    let (mut first, mut second) = (pair(&fabric).await?, pair(&fabric).await?);
    let field = Buffer::<u64>::in_place(&fabric, 4)?;
    let (mut in_first, mut in_second) = (Header::new(&fabric, &first)?, Header::new(&fabric, &second)?);
    let mut earlier = Some(Box::pin(request(&mut first, &field, 2)));
    let mut forged = 0;
    if let To::Earlier(which) | To::GivenUp(which) = to {
        let publish = || {
            in_first.is_published(which).is_some_and(|key| {
                forged = key;
                true
            })
        };
        let earlier = earlier.as_mut().expect("it is being made");
        let ended = turns.take(me, &mut earlier.as_mut(), publish).await;
        assert!(ended.is_none(), "{ended:?}");
    }
    if let To::GivenUp(_) = to {
        earlier = None;
    }
    let imitated = match to {
        To::Open(kind) => Some(imitation(&fabric, kind)?),
        To::Words(kind) => Some(imitation(&Handles::guarded(&fabric)?.words, kind)?),
        To::Earlier(_) | To::GivenUp(_) => None,
    };
    forged = imitated.as_ref().map_or(forged, |region| region.key().to_bits());
    let mut led = false;
    let made = {
        let mut making = pin!(request(&mut second, &field, 3));
        let lead = || {
            if in_second.is_published(nth).is_some() {
                in_second.lead_to(forged);
                led = true;
            }
            false
        };
        turns.take(me, &mut making.as_mut(), lead).await
    };
    assert!(led || me == 0, "{to:?} at table {nth}: nobody was led");
    drop(earlier);
    Ok(made.expect("it ends").err())
}

fn errors(nth: u32, to: To) -> [Option<PrdmaError>; 2] {
    let turns = Turns::new();
    let program = async |fabric: Fabric| misled(fabric, &turns, nth, to).await;
    let ended = threads(2).run(&program).unwrap_or_else(|error| panic!("{to:?} at table {nth}: {error}"));
    ended.try_into().expect("two ranks")
}

#[test]
fn tables_of_another_request_are_refused() {
    // Each of the first tables names the other rank's table; both ends check that.
    for (nth, other) in [(1, PrdmaError::Damaged { member: 0 }), (2, PrdmaError::ElsewhereFailed)] {
        let [told, elsewhere] = errors(nth, To::Earlier(nth));
        assert_eq!(told, Some(PrdmaError::Damaged { member: 1 }), "table {nth}");
        assert_eq!(elsewhere, Some(other), "table {nth}");
    }
}

#[test]
fn invalid_tables_are_refused() {
    let corrupt = Some(PrdmaError::Fabric(FabricError::Corrupt { rank: Rank::new(1), what: &"seal of a table" }));
    for (nth, kind) in [(1, Terms::KIND), (2, CpuContact::KIND)] {
        for to in [To::Open(kind), To::Words(kind), To::Earlier(3 - nth)] {
            let [told, elsewhere] = errors(nth, to);
            assert_eq!((told, elsewhere), (corrupt.clone(), Some(PrdmaError::ElsewhereFailed)), "{nth}, {to:?}");
        }
        let [told, _] = errors(nth, To::GivenUp(nth));
        let stale = matches!(told, Some(PrdmaError::Fabric(FabricError::StaleRegion { .. })));
        assert!(stale, "{told:?}");
    }
}

#[test]
fn a_table_without_its_seal_is_refused_by_its_reader() {
    let program = async |fabric: Fabric| {
        let handles = Handles::guarded(&fabric)?;
        let seal = |kind| -> Seal { handles.seal(kind).expect("guarded") };
        let region = imitation(&seal(1).handle, 0)?;
        assert!(seal(1).may_be_at(fabric.rank(), region.key())?);
        let words = handles.words.alloc(64)?;
        assert!(!seal(1).may_be_at(fabric.rank(), words.key())?);
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

#[test]
fn no_number_is_taken_that_no_clock_has_reached() {
    let nanos = |fabric: &Fabric| fabric.now().as_picos() / 1000;
    let program = async |fabric: Fabric| {
        let mut group = Group::world(&fabric).await?;
        let soon = Duration::from_millis(50);
        for (ahead, is_told) in [(u64::MAX / 2, true), (60_000_000_000, true), (soon.as_nanos() as u64, false)] {
            if group.me() == 1 {
                // As `first_number`, but with a different number.
                let lied = nanos(&fabric) + ahead;
                group.greatest(lied).await?;
                let _ = all_succeed(&mut group, Ok(())).await;
                continue;
            }
            let before = nanos(&fabric);
            let taken = fabric.before(fabric.now() + Duration::from_secs(5), first_number(&mut group)).await;
            match taken.expect("it does not wait for years") {
                Err(error) => {
                    assert!(is_told, "{error}");
                    assert!(matches!(error, PrdmaError::Fabric(FabricError::Corrupt { .. })), "{error}");
                }
                Ok(number) => {
                    assert!(!is_told && number >= before);
                    assert!(nanos(&fabric) >= number, "{number}");
                }
            }
        }
        Ok(group.barrier().await?)
    };
    threads(2).run(&program).unwrap();
}
