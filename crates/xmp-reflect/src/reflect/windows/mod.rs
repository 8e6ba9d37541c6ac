//! Transports over a window: puts between barriers, between fences, or with flushes and words.
//!
//! Each node's part of the window has a word for each piece that it sends, in which the receiver
//! writes READY, a word for each piece that it receives, in which the sender writes END, and room
//! for the received pieces. Every node can compute these locations for every other, from its plan.
//!
//! | transport | start | wait |
//! |---|---|---|
//! | barriers | barrier of all nodes, puts | completion of the node's puts, barrier |
//! | fence | – | fence, puts, fence |
//! | flush | READYs | for each piece: READY, put, flush, END; then the others' ENDs |
//!
//! If arrays have a key (and so no memory is borrowed in place), puts between barriers go directly
//! to the array, block by block, as in the paper. Otherwise the owner packs into the window, and
//! the receiver unpacks.

mod direct;
mod places;

use super::{Line, Transport};
use crate::{NodeSet, Result, XmpError, array::Cells, plan::Plan};
use direct::direct;
use fabric_offload::triggered::Transfer;
use places::places_of;
use prdma_offload::Claims;
use rdma_fabric::{Deps, LocalWord, Rank};
use rma_lock::Window;

/// The cost of packing and unpacking, for each byte: a name in the platforms' tables.
const PACK: &str = "pack";

/// A schedule's exchange over a window.
pub(super) struct Windows {
    transport: Transport,
    window: Window<u64>,
    arrays: Vec<Box<dyn Cells + Send + Sync>>,
    sends: Vec<Out>,
    receives: Vec<In>,
    /// The puts directly to the arrays, if that is possible.
    direct: Option<Vec<Transfer>>,
    claims: Claims,
    state: State,
    /// The last iteration that was started, from 1.
    iteration: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Active,
    /// A call failed, or was dropped before it completed.
    Broken,
}

/// A piece that is sent.
struct Out {
    line: Line,
    to: Rank,
    /// The local word in which the receiver writes READY, by its number.
    ready: usize,
    /// The receiver's word for END, and its room for the piece, by their first word.
    end: usize,
    data: usize,
}

/// A piece to receive.
struct In {
    line: Line,
    from: Rank,
    /// The sender's word for READY.
    ready: usize,
    end: usize,
    data: usize,
}

impl Windows {
    /// Creates the window. `plan_at` returns the plan of an array for a node. Collective over the
    /// set.
    pub(super) async fn new(
        set: &mut NodeSet,
        transport: Transport,
        arrays: Vec<Box<dyn Cells + Send + Sync>>,
        (sends, receives): (&[Line], &[Line]),
        claims: Claims,
        plan_at: &(dyn Fn(usize, usize) -> Result<Plan> + Send + Sync),
    ) -> Result<Self> {
        let all = |node: usize| -> Result<Vec<(usize, Plan)>> {
            arrays.iter().enumerate().map(|(number, array)| Ok((array.element(), plan_at(number, node)?))).collect()
        };
        let mine = places_of(&all(set.me())?);
        let words = set.group.greatest(mine.words as u64).await? as usize;
        let window = Window::in_group(&mut set.group, words).await?;
        // Each neighbour's plans, computed once.
        let mut known: Vec<(usize, Vec<(usize, Plan)>)> = Vec::new();
        let mut place = |peer: usize, line: &Line, sends: bool| -> Result<(usize, usize)> {
            let at = match known.iter().position(|(node, _)| *node == peer) {
                Some(at) => at,
                None => {
                    known.push((peer, all(peer)?));
                    known.len() - 1
                }
            };
            let plans = &known[at].1;
            let side = |plan: &Plan| if sends { plan.receives.clone() } else { plan.sends.clone() };
            let before: usize = plans[..line.array].iter().map(|(_, plan)| side(plan).len()).sum();
            let other = side(&plans[line.array].1);
            let me = set.me();
            let matching = other.iter().position(|other| other.peer == me && other.label == line.transfer.label);
            let number = before + matching.expect("plans of two nodes fit together");
            let places = places_of(plans);
            Ok(if sends { (places.sends + number, places.rooms[number]) } else { (number, 0) })
        };
        let rank = |group: &rdma_fabric::Group, line: &Line| group.rank(line.transfer.peer);
        let mut outs = Vec::new();
        for (ready, line) in sends.iter().enumerate() {
            let (end, data) = place(line.transfer.peer, line, true)?;
            outs.push(Out { line: line.clone(), to: rank(&set.group, line)?, ready, end, data });
        }
        let mut inns = Vec::new();
        for (number, line) in receives.iter().enumerate() {
            let (ready, _) = place(line.transfer.peer, line, false)?;
            let (end, data) = (mine.sends + number, mine.rooms[number]);
            inns.push(In { line: line.clone(), from: rank(&set.group, line)?, ready, end, data });
        }
        let direct = match transport {
            Transport::Barriers => direct(set, &arrays, &outs, plan_at).await?,
            _ => None,
        };
        let (state, iteration) = (State::Idle, 0);
        Ok(Windows { transport, window, arrays, sends: outs, receives: inns, direct, claims, state, iteration })
    }

    /// Returns whether cells are put directly to the arrays.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    fn broken(&self) -> XmpError {
        let why = "an earlier call failed or was dropped half-way; make the schedule anew".into();
        XmpError::Transport { transport: self.transport.to_string(), why }
    }

    fn sound(&self) -> Result<()> {
        if self.state == State::Broken { Err(self.broken()) } else { Ok(()) }
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        self.sound()?;
        if self.state == State::Active {
            return Err(prdma_offload::PrdmaError::Active { iteration: self.iteration }.into());
        }
        self.claims.begin()?;
        self.iteration += 1;
        self.state = State::Broken;
        match self.transport {
            Transport::Barriers => {
                self.window.barrier().await?;
                match &mut self.direct {
                    Some(transfers) => {
                        let fabric = self.window.fabric();
                        for transfer in transfers {
                            // As far as there is room; the rest is put by `wait`.
                            let _ = transfer.put_now(fabric).map_err(|error| *error)?;
                        }
                    }
                    None => self.put_all().await?,
                }
            }
            Transport::Flush => {
                let epoch = self.window.lock_all_no_check()?;
                for inn in &self.receives {
                    epoch.at(inn.from)?.put(inn.ready, [self.iteration]).await?;
                }
                epoch.unlock().await?;
            }
            _ => {}
        }
        self.state = State::Active;
        Ok(())
    }

    /// Waits for completion. A call that is dropped before it completes breaks the exchange.
    pub(super) async fn wait(&mut self) -> Result<()> {
        self.sound()?;
        if self.state == State::Idle {
            return Ok(());
        }
        self.state = State::Broken;
        match self.transport {
            Transport::Barriers => {
                let fabric = self.window.fabric().clone();
                for transfer in self.direct.iter_mut().flatten() {
                    transfer.put(&fabric).await?;
                }
                for out in &self.sends {
                    fabric.flush(out.to).await?;
                }
                self.window.barrier().await?;
            }
            Transport::Fence => {
                let mut epoch = self.window.fence().await?;
                for out in &self.sends {
                    epoch.at(out.to)?.put(out.data, self.packed(out).await?).await?;
                }
                epoch.fence().await?;
            }
            _ => self.flush_all().await?,
        }
        self.claims.end();
        if self.direct.is_none() {
            self.unpack().await?;
        }
        self.state = State::Idle;
        Ok(())
    }

    /// Puts each piece when its receiver is ready, followed by END, and waits for the others' ENDs.
    async fn flush_all(&self) -> Result<()> {
        let (fabric, k) = (self.window.fabric(), self.iteration);
        let epoch = self.window.lock_all_no_check()?;
        for out in &self.sends {
            fabric.wait_until(&self.word(out.ready)?, Deps::One(out.to), |ready| ready >= k).await?;
            let target = epoch.at(out.to)?;
            target.put(out.data, self.packed(out).await?).await?;
            epoch.flush(out.to).await?;
            target.put(out.end, [k]).await?;
        }
        epoch.unlock().await?;
        for inn in &self.receives {
            fabric.wait_until(&self.word(inn.end)?, Deps::One(inn.from), |end| end >= k).await?;
        }
        Ok(())
    }

    async fn put_all(&self) -> Result<()> {
        let epoch = self.window.lock_all_no_check()?;
        for out in &self.sends {
            epoch.at(out.to)?.put(out.data, self.packed(out).await?).await?;
        }
        Ok(epoch.unlock().await?)
    }

    /// Returns one of the local words.
    fn word(&self, at: usize) -> Result<LocalWord<u64>> {
        let fabric = self.window.fabric();
        Ok(fabric.local_word(self.window.own(at..at + 1)?.addr())?)
    }

    async fn packed(&self, out: &Out) -> Result<Vec<u64>> {
        let Line { array, transfer, bytes, .. } = &out.line;
        let mut words = vec![0u64; bytes.div_ceil(8) as usize];
        self.arrays[*array].pack(&transfer.section, bytemuck::cast_slice_mut(&mut words))?;
        self.window.fabric().charge_bytes(PACK, *bytes as usize).await;
        Ok(words)
    }

    async fn unpack(&self) -> Result<()> {
        for inn in &self.receives {
            let Line { array, transfer, bytes, .. } = &inn.line;
            let mut words = vec![0u64; bytes.div_ceil(8) as usize];
            self.window.read(inn.data, &mut words)?;
            self.arrays[*array].unpack(&transfer.section, bytemuck::cast_slice(&words))?;
            self.window.fabric().charge_bytes(PACK, *bytes as usize).await;
        }
        Ok(())
    }
}
