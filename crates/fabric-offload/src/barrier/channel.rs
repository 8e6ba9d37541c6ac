//! A group's connected gates: the basis of [`super::Barrier`] and the reductions.

use super::{
    GateError, GateId, GateUnit, Gates, Progress, Values, Wiring,
    plan::{self, GraphShape, MOST_GATES, Plan},
};
use core::fmt;
use rdma_fabric::{Group, Members, Result};

/// The graph that a group agrees to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Every member gets the result.
    All(GraphShape),
    /// Only this member receives the result.
    To(usize),
}

impl Form {
    fn code(self) -> u64 {
        match self {
            Form::All(GraphShape::RecursiveDoubling) => 0,
            Form::All(GraphShape::Ring) => 1,
            // More than any list of the other members needs.
            Form::To(owner) => 1 << 32 | owner as u64,
        }
    }

    fn plan(self, n: usize, me: usize) -> Plan {
        match self {
            Form::All(shape) => plan::all(shape, n, me),
            Form::To(owner) => plan::to_owner(n, owner, me),
        }
    }
}

/// Encodes the forms that a member requests as a number.
fn wish(forms: &[Form]) -> u64 {
    forms.iter().fold(0, |code, form| code * 8 + 1 + form.code())
}

/// The word for set-up that receives the gate that signals this member's gate `slot`, from the owner
/// of that gate.
fn source(slot: usize) -> usize {
    2 * slot
}

/// The word for set-up that receives the gate that this member's gate `slot` signals, from the owner
/// of that gate.
fn destination(slot: usize) -> usize {
    2 * slot + 1
}

const _: () = assert!(2 * MOST_GATES <= Group::SETUP_WORDS);

pub(super) struct Channel {
    gates: Gates,
    members: Members,
    /// Whether no other member contributes anything, so that a result without a gate consists of
    /// this member's values.
    pub(super) alone: bool,
}

impl Channel {
    /// Builds the first of `forms` for which all members have gates. Collective.
    pub(super) async fn build(group: &mut Group, forms: &[Form]) -> Result<Self> {
        let wish = wish(forms);
        // All members' values are equal if the maximum equals the minimum.
        let (most, least) = (group.greatest(wish).await?, !group.greatest(!wish).await?);
        if most != least {
            return Err(GateError::Disagreement.into());
        }
        let mut end = Err(GateError::NoGates { rank: group.fabric().rank(), wanted: 0, starts: 0, relays: 0 }.into());
        for form in forms {
            let plan = form.plan(group.len(), group.me());
            let (gates, mut refusal) = match Self::allocate(group, &plan) {
                Ok(gates) => (Some(gates), 0),
                Err(error) => {
                    end = Err(error);
                    (None, 1 + group.me() as u64)
                }
            };
            refusal = group.greatest(refusal).await?;
            match gates {
                Some(gates) if refusal == 0 => return Self::wire(group, gates, &plan).await,
                Some(_) => {
                    let rank = group.rank(refusal as usize - 1)?;
                    end = Err(GateError::NoGates { rank, wanted: 0, starts: 0, relays: 0 }.into());
                }
                None => {}
            }
        }
        end
    }

    fn allocate(group: &Group, plan: &Plan) -> Result<Gates> {
        debug_assert!(plan.len() <= MOST_GATES);
        GateUnit::of(group.fabric()).alloc(plan.len())
    }

    /// Writes this member's gates to the members at the other ends of remote connections, and sets
    /// the connections of its gates.
    async fn wire(group: &mut Group, gates: Gates, plan: &Plan) -> Result<Self> {
        let ids = gates.ids().to_vec();
        for (links, id) in plan.iter().zip(&ids) {
            if let Some((member, slot)) = links.destination_remote {
                let word = group.setup_word(member, source(slot))?;
                group.fabric().put_word(&word, id.to_bits()).await?;
            }
            if let Some((member, slot)) = links.source_remote {
                let word = group.setup_word(member, destination(slot))?;
                group.fabric().put_word(&word, id.to_bits()).await?;
            }
        }
        // After this, gates that members have written earlier have arrived.
        group.fabric().flush_all().await?;
        group.barrier().await?;
        let mut wirings = Vec::with_capacity(plan.len());
        for (slot, (links, &gate)) in plan.iter().zip(&ids).enumerate() {
            let peer = |end: Option<(usize, usize)>, word| {
                let gate = || group.fabric().load(&group.own_setup_word(word)?).map(GateId::from_bits);
                end.map(|_| gate()).transpose()
            };
            wirings.push(Wiring {
                gate,
                source_local: links.source_local.map(|slot| ids[slot]),
                source_remote: peer(links.source_remote, source(slot))?,
                destination_local: links.destination_local.map(|slot| ids[slot]),
                destination_remote: peer(links.destination_remote, destination(slot))?,
            });
        }
        let set = GateUnit::of(gates.fabric()).set(&wirings);
        // All gates are set before any is started.
        group.barrier().await?;
        set?;
        Ok(Channel { gates, members: group.members().clone(), alone: group.len() == 1 })
    }

    fn unit(&self) -> GateUnit<'_> {
        GateUnit::of(self.gates.fabric())
    }

    pub(super) fn start(&self, values: Values) -> Result<()> {
        self.unit().start(self.gates.start(), values)
    }

    pub(super) fn test(&self) -> Result<Progress> {
        self.unit().poll(self.gates.start(), self.members.deps())
    }

    pub(super) async fn wait(&self) -> Result<Option<Values>> {
        self.unit().wait(self.gates.start(), self.members.deps()).await
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Members that request different forms must be notified.
    #[test]
    fn no_two_wishes_have_the_same_number() {
        let shapes = [GraphShape::RecursiveDoubling, GraphShape::Ring].map(Form::All);
        let lists = [vec![shapes[0]], vec![shapes[1]], shapes.to_vec()];
        let all: Vec<_> = lists.into_iter().chain((0..1000).map(|owner| vec![Form::To(owner)])).collect();
        let numbers: BTreeSet<u64> = all.iter().map(|forms| wish(forms)).collect();
        assert_eq!(numbers.len(), all.len());
    }
}
