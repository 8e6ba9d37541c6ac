//! Processing of updates about gates of other nodes: a rank writes them into its mirrors, and
//! answers them with updates about its own gates.

#[cfg(target_os = "linux")]
use super::fire;
use super::{
    own::OwnGates,
    record::{At, Field, Units, is_later, pack, previous, slot, unpack},
    remote::{self, GateUpdate},
};
#[cfg(target_os = "linux")]
use crate::endpoint::Endpoint;
use crate::memory::word::Word;
use core::sync::atomic::Ordering::{Relaxed, Release};
use rdma_fabric::{Rank, barrier::GateId};

impl OwnGates {
    /// Writes an update into the mirror of its wire, if it is newer than the mirror's contents.
    /// Returns the record that may fire as a result. An answer to a request that this rank made
    /// when it set its gate (`is_answer`) is accepted regardless of its contents.
    pub(crate) fn apply(&mut self, units: &impl Units, me: Rank, update: &GateUpdate, is_answer: bool) -> Option<At> {
        // A freed gate still needs to know which packets its destinations have read.
        let outputs = At::outputs(units, update.to).filter(|_| update.to.rank() == me)?;
        let life = self.life(outputs);
        if life != update.to.generation() && life != update.to.generation() + 1 {
            return None;
        }
        let at = match update.wire {
            Field::SourceRemote => At::inputs(units, update.to)?,
            _ => outputs,
        };
        let named = GateId::from_bits(units.word(at, update.wire).load(Relaxed)).gate()?;
        let is_older = update.life < u64::from(named.generation()) && !is_answer;
        if (named.rank(), named.index()) != (update.rank, update.index) || is_older {
            return None;
        }
        let mirror = at.mirror(units, update.wire);
        let word = |field| units.word(mirror, field);
        // Only this rank writes the mirror, under the endpoint's lock.
        let is_known = word(Field::Posted).load(Relaxed) == named.to_bits();
        let (life, setting) = (word(Field::Life).load(Relaxed), word(Field::Setting).load(Relaxed));
        let fired = unpack(word(Field::State).load(Relaxed)).0;
        // A life is odd while the gate is allocated, and the next number when it was freed.
        let run = |life: u64, setting| (life.div_ceil(2), setting);
        let goes_on = is_known && run(update.life, update.setting) == run(life, setting);
        if goes_on {
            if !is_later(update.fired, fired) && update.life <= life {
                return None;
            }
        } else {
            if is_known && run(update.life, update.setting) < run(life, setting) {
                return None;
            }
            // The mirror is marked as unknown until all of it is written.
            word(Field::Posted).store(0, Relaxed);
            units.fence(Release);
            word(Field::Setting).store(update.setting, Relaxed);
            word(update.wire.opposite()).store(update.leads.to_bits(), Relaxed);
        }
        for (round, packet) in [(previous(update.fired), &update.packets[1]), (update.fired, &update.packets[0])] {
            // Packets that are already there may be read concurrently.
            if !goes_on || is_later(round, fired) {
                let to = |index| units.packet(mirror, slot(round), index);
                packet.iter().enumerate().for_each(|(index, word)| to(index).store(*word, Relaxed));
            }
        }
        if !goes_on || is_later(update.fired, fired) {
            // F4. Release: pairs with the acquire in `fire`, for the packets.
            word(Field::State).store(pack(update.fired, 0), Release);
        }
        if !goes_on || update.life > life {
            // Release: pairs with the acquire in `age`, for the rounds fired before.
            word(Field::Life).store(update.life, Release);
        }
        // Release: pairs with the acquire in `remote::mirror`.
        word(Field::Posted).store(named.to_bits(), Release);
        Some(at)
    }

    /// Returns the update to send back: about the gate that `update` is for. `None` if this rank
    /// has no such gate.
    pub(crate) fn answer(&self, units: &impl Units, me: Rank, update: &GateUpdate) -> Option<GateUpdate> {
        let outputs = At::new(units, me, update.to.index() as usize).filter(|_| update.to.rank() == me)?;
        let from = GateId::new(update.rank, update.index, update.life as u32);
        let at = match update.wire {
            Field::SourceRemote => At::inputs(units, update.to)?,
            _ => outputs,
        };
        remote::update(units, at, update.wire, from)
    }
}

#[cfg(target_os = "linux")]
impl Endpoint {
    /// Processes an update about a gate of another node that was fired or freed, and executes the
    /// gates that can fire as a result.
    pub(crate) fn apply_gate(&self, update: &GateUpdate) {
        let units = self.units();
        let changed = self.own_gates().apply(&units, self.me(), update, false);
        fire::run(&units, self.me(), changed.into_iter().collect());
    }

    /// Processes an update about a gate of another node that was set, or an answer to an update of
    /// this rank. No gate is executed, as when gates of this node are set: until a gate is started,
    /// it is not a fault that the other end of a wire is not set.
    pub(crate) fn apply_setting(&self, update: &GateUpdate, is_answer: bool) {
        self.own_gates().apply(&self.units(), self.me(), update, is_answer);
    }

    /// Returns the update to send back to the sender of this one.
    pub(crate) fn answer_about_gate(&self, update: &GateUpdate) -> Option<GateUpdate> {
        self.own_gates().answer(&self.units(), self.me(), update)
    }
}
