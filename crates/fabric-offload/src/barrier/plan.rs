//! The wiring of the members' gates: the usual graphs, for any number of members.
//!
//! * *Recursive doubling*: in step *k* members whose numbers differ in bit *k* exchange their
//!   partial results. With *n* = 2^k + *r* members, each of the first *r* first receives the values
//!   of one of the last *r*, and finally sends it the result through the remote destination of its
//!   last gate, which has no other use.
//! * **Ring to an owner*: values are passed from member to member and end at the owner. The other
//!   members do not receive the result.
//! * **Ring*: a ring to an owner, followed by one circulation of the result around the ring.

/// The shape of the graph of a barrier or reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphShape {
    /// ⌈log₂ n⌉ steps; at most one more relay gate than steps.
    RecursiveDoubling,
    /// 2(n − 1) steps; at most two relay gates.
    Ring,
}

/// The index of a member's gate: 0 is its start/end gate, others are its relay gates.
pub(super) type GateIndex = usize;

/// The connections of one of this member's gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GateLinks {
    pub(super) source_local: Option<GateIndex>,
    pub(super) source_remote: Option<(usize, GateIndex)>,
    pub(super) destination_local: Option<GateIndex>,
    pub(super) destination_remote: Option<(usize, GateIndex)>,
}

/// One member's part: the connections of its gates, by slot.
pub(super) type Plan = Vec<GateLinks>;

/// The largest number of gates that a member has.
pub(super) const MOST_GATES: usize = 32;

fn link(plan: &mut Plan, from: GateIndex, to: GateIndex) {
    plan[from].destination_local = Some(to);
    plan[to].source_local = Some(from);
}

/// Returns a member's gates in a graph in which every member receives the result.
pub(super) fn all(shape: GraphShape, n: usize, me: usize) -> Plan {
    match shape {
        _ if n <= 1 => vec![GateLinks::default()],
        GraphShape::RecursiveDoubling => doubling(n, me),
        GraphShape::Ring => ring(n, me),
    }
}

fn doubling(n: usize, me: usize) -> Plan {
    let steps = n.ilog2() as usize;
    let core = 1 << steps;
    let taken_in = n - core;
    // Whether a member has a gate that receives another member's values before its first step.
    let folds = |member: usize| usize::from(member < taken_in);
    if me >= core {
        // The last gate of its host sends it the result.
        let host = me - core;
        let end = steps + 1;
        return vec![GateLinks {
            destination_remote: Some((host, 1)),
            source_remote: Some((host, end)),
            ..GateLinks::default()
        }];
    }
    let relays = steps + folds(me);
    let mut plan = vec![GateLinks::default(); 1 + relays];
    for slot in 0..relays {
        link(&mut plan, slot, slot + 1);
    }
    link(&mut plan, relays, 0);
    if folds(me) == 1 {
        plan[1].source_remote = Some((core + me, 0));
        plan[relays].destination_remote = Some((core + me, 0));
    }
    for step in 0..steps {
        let partner = me ^ 1 << step;
        // GateIndex `step` plus folding holds the values that this step sends, the next one
        // receives the values that the partner sends.
        plan[step + folds(me)].destination_remote = Some((partner, step + folds(partner) + 1));
        plan[step + folds(me) + 1].source_remote = Some((partner, step + folds(partner)));
    }
    plan
}

/// Members in the order of the ring, with the owner last.
struct Ring {
    n: usize,
    owner: usize,
}

impl Ring {
    fn place(&self, member: usize) -> usize {
        (member + self.n - self.owner - 1) % self.n
    }
    fn member(&self, place: usize) -> usize {
        (place + self.owner + 1) % self.n
    }
    /// Returns the gate at `place` that sends the sum of all members up to that place.
    fn sender(&self, place: usize) -> (usize, GateIndex) {
        (self.member(place), usize::from(place > 0))
    }
}

/// Returns a member's gates in a graph in which only the owner receives the result.
pub(super) fn to_owner(n: usize, owner: usize, me: usize) -> Plan {
    if n <= 1 {
        return vec![GateLinks::default()];
    }
    let ring = Ring { n, owner };
    let place = ring.place(me);
    let mut plan = vec![GateLinks::default()];
    if place > 0 {
        plan.push(GateLinks { source_remote: Some(ring.sender(place - 1)), ..GateLinks::default() });
        link(&mut plan, 0, 1);
    }
    let last = plan.len() - 1;
    if place + 1 < n {
        plan[last].destination_remote = Some((ring.member(place + 1), 1));
    } else {
        link(&mut plan, last, 0);
    }
    plan
}

fn ring(n: usize, me: usize) -> Plan {
    let mut plan = to_owner(n, n - 1, me);
    let ring = Ring { n, owner: n - 1 };
    let place = ring.place(me);
    // The result travels around the ring from the owner: places 0 to n - 3 forward it through a
    // gate, place n - 2 receives it.
    let back_slot = |place: usize| if place + 2 < n { 1 + usize::from(place > 0) } else { 0 };
    if place + 1 == n {
        plan[1].destination_remote = Some((ring.member(0), back_slot(0)));
        return plan;
    }
    let from = if place == 0 { ring.sender(n - 1) } else { (ring.member(place - 1), back_slot(place - 1)) };
    let slot = back_slot(place);
    if slot == plan.len() {
        plan.push(GateLinks::default());
        link(&mut plan, slot, 0);
        plan[slot].destination_remote = Some((ring.member(place + 1), back_slot(place + 1)));
    }
    plan[slot].source_remote = Some(from);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every wire has two ends.
    fn check_wires(plans: &[Plan]) {
        for (me, plan) in plans.iter().enumerate() {
            for (slot, links) in plan.iter().enumerate() {
                let what = format!("gate {slot} of member {me} of {}", plans.len());
                if let Some(to) = links.destination_local {
                    assert_eq!(plan[to].source_local, Some(slot), "{what}");
                }
                if let Some(from) = links.source_local {
                    assert_eq!(plan[from].destination_local, Some(slot), "{what}");
                }
                if let Some((member, to)) = links.destination_remote {
                    assert_eq!(plans[member][to].source_remote, Some((me, slot)), "{what}");
                    assert_ne!(member, me, "{what}");
                }
                if let Some((member, from)) = links.source_remote {
                    assert_eq!(plans[member][from].destination_remote, Some((me, slot)), "{what}");
                }
                let (source, destination) = (
                    links.source_local.is_some() || links.source_remote.is_some(),
                    links.destination_local.is_some() || links.destination_remote.is_some(),
                );
                assert!(slot == 0 || source && destination, "{what}");
            }
            assert!(plan.len() <= MOST_GATES);
        }
    }

    /// Returns the values that arrive at the end half of a member's start/end gate, if each member
    /// contributes its number.
    fn result(plans: &[Plan], me: usize) -> Option<Vec<usize>> {
        fn sent(plans: &[Plan], member: usize, slot: GateIndex) -> Vec<usize> {
            if slot == 0 { vec![member] } else { taken(plans, member, slot) }
        }
        fn taken(plans: &[Plan], member: usize, slot: GateIndex) -> Vec<usize> {
            let links = plans[member][slot];
            let local = links.source_local.map(|slot| sent(plans, member, slot));
            let remote = links.source_remote.map(|(member, slot)| sent(plans, member, slot));
            local.into_iter().chain(remote).flatten().collect()
        }
        let mut got = taken(plans, me, 0);
        got.sort_unstable();
        (!got.is_empty()).then_some(got)
    }

    #[test]
    fn everybody_counts_once_everywhere() {
        for n in 1..=70 {
            for shape in [GraphShape::RecursiveDoubling, GraphShape::Ring] {
                let plans: Vec<Plan> = (0..n).map(|me| all(shape, n, me)).collect();
                check_wires(&plans);
                for me in 0..n {
                    let want = (n > 1).then(|| (0..n).collect::<Vec<_>>());
                    assert_eq!(result(&plans, me), want, "{shape:?}, member {me} of {n}");
                    let most = if shape == GraphShape::Ring { 3 } else { 2 + n.ilog2() as usize };
                    assert!(plans[me].len() <= most);
                }
            }
        }
    }

    #[test]
    fn the_owner_gets_everything() {
        for n in 1..=12 {
            for owner in 0..n {
                let plans: Vec<Plan> = (0..n).map(|me| to_owner(n, owner, me)).collect();
                check_wires(&plans);
                for me in 0..n {
                    let want = (n > 1 && me == owner).then(|| (0..n).collect::<Vec<_>>());
                    assert_eq!(result(&plans, me), want, "owner {owner}, member {me} of {n}");
                }
            }
        }
    }
}
