//! An exchange and its expected result.
//!
//! Each byte that is sent depends on the iteration, the sender and its place in the send buffer.
//! The oracle knows the expected value of each byte of the whole receive buffer: the other end's
//! byte at the place from which the block comes, or the previous byte.

use super::{
    areas::{Area, Cut, ROOM, draw},
    shapes::Shape,
};
use onesided::{
    Fabric, Group, ProgramResult,
    prdma::{Buffer, Form, Layout, LayoutError, Neighbourhood, Options, Request},
};
use std::time::Duration;

/// The call that creates an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) enum Collective {
    Alltoallw,
    Alltoallv,
    Alltoall,
    Allgather,
    Allgatherv,
}

/// The number of bytes of each edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sizes {
    All(usize),
    /// A number for each sender and slot, sometimes 0. All of them divide well.
    Mixed(u64),
}

impl Sizes {
    const SOME: [usize; 6] = [0, 12, 240, 24, 60, 120];

    fn of(self, call: Collective, member: usize, slot: usize) -> usize {
        match self {
            Sizes::All(bytes) => bytes,
            Sizes::Mixed(seed) => {
                // A block that is sent to all members has one size.
                let slot = if matches!(call, Collective::Allgatherv) { 0 } else { slot };
                Self::SOME[draw(seed, member, slot) as usize % Self::SOME.len()]
            }
        }
    }
}

/// The data of an exchange, its members, and its form.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) shape: Shape,
    pub(super) call: Collective,
    pub(super) sizes: Sizes,
    pub(super) sends: Cut,
    pub(super) receives: Cut,
    pub(super) options: Options,
    /// Whether the blocks of both sides are in one buffer.
    pub(super) shared: bool,
}

/// The contents of the receive buffer before anything is received.
const UNTOUCHED: u8 = 0xEE;

impl Spec {
    pub(super) fn new(shape: Shape, form: Form) -> Self {
        Spec {
            shape,
            call: Collective::Alltoallw,
            sizes: Sizes::All(60),
            sends: Cut::Contiguous,
            receives: Cut::Contiguous,
            options: Options::form(form),
            shared: false,
        }
    }

    /// Returns this exchange with each of the five calls, with sizes that the call supports.
    pub(super) fn by_each_call(&self) -> [Spec; 5] {
        let spec = |call, sizes| Spec { call, sizes, ..self.clone() };
        [
            spec(Collective::Alltoallw, Sizes::Mixed(5)),
            spec(Collective::Alltoallv, Sizes::Mixed(5)),
            spec(Collective::Alltoall, Sizes::All(37)),
            spec(Collective::Allgather, Sizes::All(37)),
            spec(Collective::Allgatherv, Sizes::Mixed(6)),
        ]
    }

    /// Returns the blocks that a member sends, including those of slots without a neighbour.
    fn sent(&self, me: usize) -> Result<Vec<Area>, LayoutError> {
        let slots = self.shape.slots(me).1;
        let area = |slot: usize| {
            let bytes = self.sizes.of(self.call, me, slot);
            let from = match self.call {
                Collective::Alltoallw | Collective::Alltoallv => return self.sends.area(0, slot, slots, bytes, true),
                Collective::Alltoall => slot * bytes,
                Collective::Allgather | Collective::Allgatherv => 5,
            };
            Ok(Area { layout: Layout::contiguous::<u8>(from, bytes)?, bytes: (from..from + bytes).collect() })
        };
        (0..slots).map(area).collect()
    }

    fn received(&self, me: usize) -> Result<Vec<Area>, LayoutError> {
        let slots = self.shape.slots(me).0;
        let base = self.base(me);
        let area = |slot: usize| {
            let bytes = match self.shape.sender(me, slot) {
                Some((member, from)) => self.sizes.of(self.call, member, from),
                None => self.sizes.of(self.call, me, slot),
            };
            match self.call {
                Collective::Alltoall | Collective::Allgather => {
                    let at = slot * bytes;
                    Ok(Area { layout: Layout::contiguous::<u8>(at, bytes)?, bytes: (at..at + bytes).collect() })
                }
                _ => self.receives.area(base, slot, slots, bytes, false),
            }
        };
        (0..slots).map(area).collect()
    }

    /// Returns the length of the send buffer: more than any block needs.
    fn send_bytes(&self, me: usize) -> usize {
        (self.shape.slots(me).1 + 1) * ROOM
    }

    fn receive_bytes(&self, me: usize) -> usize {
        (self.shape.slots(me).0 + 1) * ROOM
    }

    /// Returns, for each byte that is received, its sender, its offset there, and its offset here
    /// after the base.
    fn plan(&self, me: usize) -> Result<Vec<(usize, usize, usize)>, LayoutError> {
        let (mut plan, base) = (Vec::new(), self.base(me));
        for (slot, area) in self.received(me)?.iter().enumerate() {
            if let Some((member, from)) = self.shape.sender(me, slot) {
                let sent = &self.sent(member)?[from];
                assert_eq!(sent.bytes.len(), area.bytes.len(), "{self:?}");
                plan.extend(sent.bytes.iter().zip(&area.bytes).map(|(from, at)| (member, *from, at - base)));
            }
        }
        Ok(plan)
    }

    /// Returns the offset at which receive blocks begin.
    fn base(&self, me: usize) -> usize {
        if self.shared { self.send_bytes(me) } else { 0 }
    }
}

/// Returns the byte that a member sends from an offset.
fn content(k: u64, member: usize, at: usize) -> u8 {
    draw(k, member, at) as u8
}

/// The buffers of an exchange at one member, and their current iteration.
pub(super) struct ExchangeData {
    pub(super) spec: Spec,
    me: usize,
    /// The offsets of the bytes that are sent.
    mine: Vec<usize>,
    plan: Vec<(usize, usize, usize)>,
    send: Buffer<u8>,
    receive: Buffer<u8>,
    k: u64,
}

impl ExchangeData {
    fn new(fabric: &Fabric, me: usize, spec: &Spec) -> ProgramResult<Self> {
        let (sends, receives) = (spec.send_bytes(me), spec.receive_bytes(me));
        let send = Buffer::<u8>::new(fabric, if spec.shared { sends + receives } else { sends })?;
        let receive = if spec.shared { send.clone() } else { Buffer::new(fabric, receives)? };
        receive.write(spec.base(me), &vec![UNTOUCHED; receives])?;
        let mine = spec.sent(me)?.iter().flat_map(|area| area.bytes.clone()).collect();
        Ok(ExchangeData { spec: spec.clone(), me, mine, plan: spec.plan(me)?, send, receive, k: 0 })
    }

    /// Writes the data of the next iteration.
    pub(super) fn fill(&mut self) -> ProgramResult<()> {
        self.k += 1;
        let mut all = vec![0; self.spec.send_bytes(self.me)];
        self.mine.iter().for_each(|at| all[*at] = content(self.k, self.me, *at));
        Ok(self.send.write(0, &all)?)
    }

    /// Makes the oracle expect a different value for the first byte that is received.
    pub(super) fn mistake(&mut self) {
        if let Some((_, from, _)) = self.plan.first_mut() {
            *from += 1;
        }
    }

    /// Returns the bytes of the receive buffer.
    pub(super) fn received(&self) -> ProgramResult<Vec<u8>> {
        let mut all = vec![0; self.spec.receive_bytes(self.me)];
        self.receive.read(self.spec.base(self.me), &mut all)?;
        Ok(all)
    }

    /// Checks that every byte has its expected value after this iteration.
    pub(super) fn check(&self) -> ProgramResult<()> {
        let (got, mut want) = (self.received()?, vec![UNTOUCHED; self.spec.receive_bytes(self.me)]);
        for (member, from, at) in &self.plan {
            want[*at] = content(self.k, *member, *from);
        }
        let (k, me, spec) = (self.k, self.me, &self.spec);
        if got != want {
            let at = got.iter().zip(&want).position(|(got, want)| got != want).unwrap_or(0);
            let (is, must) = (got[at], want[at]);
            return Err(format!("iteration {k} of member {me}: byte {at} is {is}, not {must}; {spec:?}").into());
        }
        Ok(())
    }
}

/// An exchange that has been created, at one member.
pub(super) struct Exchange {
    pub(super) data: ExchangeData,
    pub(super) request: Request,
}

/// Creates a neighbourhood of all ranks. Collective.
pub(super) async fn all(fabric: &Fabric, shape: &Shape) -> ProgramResult<Neighbourhood> {
    let world = Group::world(fabric).await?;
    let topology = shape.topology(world.me())?;
    Ok(Neighbourhood::new(world, topology).await?)
}

impl Exchange {
    /// Makes an exchange. Collective.
    pub(super) async fn new(hood: &mut Neighbourhood, spec: &Spec) -> ProgramResult<Self> {
        let (fabric, me) = (hood.group().fabric().clone(), hood.group().me());
        let data = ExchangeData::new(&fabric, me, spec)?;
        let (send, receive) = (&data.send, &data.receive);
        let (from, at) = (spec.sent(me)?, spec.received(me)?);
        let layouts = |areas: &[Area]| areas.iter().map(|area| area.layout).collect::<Vec<_>>();
        // Contiguous blocks, as the simpler calls take them.
        let runs = |areas: &[Area]| {
            let run = |area: &Area| (area.bytes.first().copied().unwrap_or(0), area.bytes.len());
            areas.iter().map(run).collect::<Vec<_>>()
        };
        let (options, count) = (&spec.options, spec.sizes.of(spec.call, me, 0));
        let request = match spec.call {
            Collective::Alltoallw => hood.alltoallw_init(send, &layouts(&from), receive, &layouts(&at), options).await,
            Collective::Alltoallv => hood.alltoallv_init(send, &runs(&from), receive, &runs(&at), options).await,
            Collective::Alltoall => hood.alltoall_init(send, receive, count, options).await,
            Collective::Allgather => hood.allgather_init(send, 5, receive, count, options).await,
            Collective::Allgatherv => hood.allgatherv_init(send, (5, count), receive, &runs(&at), options).await,
        }?;
        Ok(Exchange { data, request })
    }

    /// Writes new data, and starts.
    pub(super) async fn start(&mut self) -> ProgramResult<()> {
        self.data.fill()?;
        Ok(self.request.start().await?)
    }

    /// Waits, and checks that every byte has its expected value.
    pub(super) async fn wait(&mut self) -> ProgramResult<()> {
        self.request.wait().await?;
        self.data.check()
    }

    /// Runs `many` iterations.
    pub(super) async fn steps(&mut self, many: u64) -> ProgramResult<()> {
        for _ in 0..many {
            self.start().await?;
            self.wait().await?;
        }
        Ok(())
    }
}

/// Creates each exchange, applies `what` to it, and frees it. Collective.
pub(super) async fn each(
    fabric: &Fabric,
    specs: impl IntoIterator<Item = Spec>,
    mut what: impl AsyncFnMut(&mut Exchange) -> ProgramResult<()>,
) -> ProgramResult<()> {
    for spec in specs {
        let mut hood = all(fabric, &spec.shape).await?;
        what(&mut Exchange::new(&mut hood, &spec).await?).await?;
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// Creates an exchange, runs `steps` iterations of it, and frees it. Collective.
pub(super) async fn through(fabric: &Fabric, spec: &Spec, steps: u64) -> ProgramResult<()> {
    each(fabric, [spec.clone()], async |exchange| exchange.steps(steps).await).await
}

/// Returns this rank and the number of ranks.
pub(super) fn place(fabric: &Fabric) -> (usize, usize) {
    (fabric.rank().index(), fabric.ranks())
}

/// Returns the ranks to the left and to the right on a ring.
pub(super) fn neighbours(fabric: &Fabric) -> (usize, usize) {
    let (me, members) = place(fabric);
    ((me + members - 1) % members, (me + 1) % members)
}

/// Lets time pass without progress, as on a computing rank, also in wall-clock time.
pub(super) async fn busy(fabric: &Fabric, time: Duration) {
    let until = fabric.now() + time;
    fabric.compute(time).await;
    while fabric.now() < until {
        std::hint::spin_loop();
    }
}
