//! All nodes of a job, simulated one after another in one thread.

use crate::{
    arrays::Array,
    expected::{Expected, UNTOUCHED},
};
use std::collections::HashMap;
use xmp_reflect::{Corners, Mapping, Part, Plan, Section, Transfer, Widths};

/// The memory of one node.
struct Memory<'a> {
    part: Part<'a>,
    strides: Vec<usize>,
    cells: Vec<i64>,
    /// The cells that have been received in the current exchange.
    written: Vec<bool>,
}

/// All nodes.
pub(crate) struct Job<'a> {
    memories: Vec<Memory<'a>>,
    expected: &'a Expected,
}

/// A transfer that has left a node, and the values of its cells.
type Sent<'a> = (&'a Transfer, Vec<i64>);

/// Checks the plans that the crate creates for a reflect of an array, and those of the opposite
/// direction.
pub(crate) fn check(array: &Array, widths: &[Widths], corners: Corners) -> Result<(), String> {
    let mapping = array.mapping().map_err(|error| error.to_string())?;
    let plans = plans(&mapping, widths, corners)?;
    let expected = Expected::new(array, widths, corners);
    reflects(&mapping, &expected, &plans)?;
    let reversed: Vec<Plan> = plans.into_iter().map(Plan::reversed).collect();
    reduces(&mapping, &expected, &reversed)
}

/// The plans of all nodes.
pub(crate) fn plans(mapping: &Mapping, widths: &[Widths], corners: Corners) -> Result<Vec<Plan>, String> {
    let plan = |node| Plan::new(mapping, node, widths, corners).map_err(|error| error.to_string());
    (0..mapping.nodes().size()).map(plan).collect()
}

/// Runs a reflect, and compares all cells with the expected values.
pub(crate) fn reflects(mapping: &Mapping, expected: &Expected, plans: &[Plan]) -> Result<(), String> {
    let mut job = Job::new(mapping, expected)?;
    job.reflect(plans)?;
    job.compare()
}

/// Runs a reduction of shadows, all of whose cells have different values, onto their sources.
fn reduces(mapping: &Mapping, expected: &Expected, plans: &[Plan]) -> Result<(), String> {
    let mut next = 0u64;
    let mut job = Job::filled(mapping, expected, |_, _| {
        next += 1;
        (next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as i64
    })?;
    // Keyed by the value that a reflect would have delivered.
    let mut sums: HashMap<i64, i64> = HashMap::new();
    for memory in &job.memories {
        for local in all(memory.part.extents()).iter() {
            if let Some(source) = expected.filled(memory.part.coordinates(), &local) {
                *sums.entry(source).or_default() += memory.cells[memory.offset(&local)];
            }
        }
    }
    let before: Vec<Vec<i64>> = job.memories.iter().map(|memory| memory.cells.clone()).collect();
    job.reduce(plans)?;
    for (memory, before) in job.memories.iter().zip(before) {
        for local in all(memory.part.extents()).iter() {
            let own = expected.own(memory.part.coordinates(), &local);
            let added = own.and_then(|own| sums.get(&own)).unwrap_or(&0);
            memory.compare(&local, before[memory.offset(&local)] + added)?;
        }
    }
    Ok(())
}

impl<'a> Job<'a> {
    /// Creates nodes that hold their own elements, after comparing the shape of their memory and
    /// the owners.
    pub(crate) fn new(mapping: &'a Mapping, expected: &'a Expected) -> Result<Job<'a>, String> {
        let own = |part: &Part, local: &[usize]| expected.own(part.coordinates(), local).unwrap_or(UNTOUCHED);
        Job::filled(mapping, expected, own)
    }

    /// Nodes whose cells have these values.
    pub(crate) fn filled(
        mapping: &'a Mapping,
        expected: &'a Expected,
        mut value: impl FnMut(&Part, &[usize]) -> i64,
    ) -> Result<Job<'a>, String> {
        let memory = |node| {
            let part = mapping.part(node).map_err(|error| error.to_string())?;
            let extents = expected.extents(part.coordinates());
            if part.extents() != extents {
                return Err(format!("node {node} has extents {:?}, not {extents:?}", part.extents()));
            }
            let (strides, cells) = (part.strides(), vec![UNTOUCHED; part.cells()]);
            let mut memory = Memory { written: vec![false; part.cells()], part, strides, cells };
            for local in all(&extents).iter() {
                let offset = memory.offset(&local);
                memory.cells[offset] = value(&memory.part, &local);
                memory.agrees(&local, expected)?;
            }
            Ok(memory)
        };
        Ok(Job { memories: (0..mapping.nodes().size()).map(memory).collect::<Result<_, _>>()?, expected })
    }

    /// Runs a reflect.
    pub(crate) fn reflect(&mut self, plans: &[Plan]) -> Result<(), String> {
        self.exchange(plans, |cell, arrived, written| {
            *cell = arrived;
            !written
        })
    }

    /// Runs a reduction of shadows.
    pub(crate) fn reduce(&mut self, plans: &[Plan]) -> Result<(), String> {
        self.exchange(plans, |cell, arrived, _| {
            *cell += arrived;
            true
        })
    }

    /// Compares all cells with their expected values after a reflect.
    pub(crate) fn compare(&self) -> Result<(), String> {
        for memory in &self.memories {
            for local in all(memory.part.extents()).iter() {
                let (at, expected) = (memory.part.coordinates(), self.expected);
                let wanted = expected.own(at, &local).or(expected.filled(at, &local)).unwrap_or(UNTOUCHED);
                memory.compare(&local, wanted)?;
            }
        }
        Ok(())
    }

    /// The value of a node's cell.
    pub(crate) fn value(&self, node: usize, local: &[usize]) -> i64 {
        self.memories[node].cells[self.memories[node].offset(local)]
    }

    /// Copies the sent pieces to the received ones, the k-th to the k-th of each two nodes. `write`
    /// receives the cell, the new value, and whether a value had arrived before; it returns whether
    /// that is allowed.
    fn exchange(&mut self, plans: &[Plan], write: impl Fn(&mut i64, i64, bool) -> bool) -> Result<(), String> {
        let mut under_way: HashMap<(usize, usize), Vec<Sent>> = HashMap::new();
        for (memory, plan) in self.memories.iter().zip(plans) {
            for transfer in &plan.sends {
                let cells = memory.inside(&transfer.section)?.iter().map(|offset| memory.cells[*offset]).collect();
                under_way.entry((memory.part.node(), transfer.peer)).or_default().push((transfer, cells));
            }
        }
        under_way.values_mut().for_each(|list| list.reverse());
        for (memory, plan) in self.memories.iter_mut().zip(plans) {
            memory.written.fill(false);
            for transfer in &plan.receives {
                let pair = (transfer.peer, memory.part.node());
                let Some((sent, cells)) = under_way.get_mut(&pair).and_then(Vec::pop) else {
                    return Err(format!("{pair:?}: nothing is sent for {transfer}"));
                };
                let ends = |of: &Transfer| (of.section.extents.clone(), of.direction.clone(), of.label);
                if ends(sent) != ends(transfer) {
                    return Err(format!("{pair:?}: {sent} is sent for {transfer}"));
                }
                for (offset, arrived) in memory.inside(&transfer.section)?.into_iter().zip(cells) {
                    if !write(&mut memory.cells[offset], arrived, memory.written[offset]) {
                        return Err(format!("{pair:?}: {transfer} was received before"));
                    }
                    memory.written[offset] = true;
                }
            }
        }
        match under_way.iter().find(|(_, list)| !list.is_empty()) {
            Some((pair, list)) => Err(format!("{pair:?}: nobody receives {}", list[0].0)),
            None => Ok(()),
        }
    }
}

impl Memory<'_> {
    fn offset(&self, local: &[usize]) -> usize {
        local.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum()
    }

    fn compare(&self, local: &[usize], wanted: i64) -> Result<(), String> {
        let found = self.cells[self.offset(local)];
        let node = self.part.node();
        if found == wanted { Ok(()) } else { Err(format!("node {node} has {found} at {local:?}, not {wanted}")) }
    }

    /// Compares the mapping's data about a cell with the expected data.
    fn agrees(&self, local: &[usize], expected: &Expected) -> Result<(), String> {
        let part = &self.part;
        let wrong = |what: &str| Err(format!("{what} of {local:?} at node {}", part.node()));
        let Some(index) = part.index(local) else { return wrong("no index") };
        if part.local(&index).as_deref() != Some(local) {
            return wrong("wrong way back");
        }
        let own = expected.own_index(part.coordinates(), local);
        if own.as_ref().is_some_and(|own| *own != index) {
            return wrong("wrong index");
        }
        if part.owns(&index) != own.is_some() {
            return wrong("wrong ownership");
        }
        let near = part.mapping().owner_near(part.node(), &index).expect("a node");
        let owners = part.mapping().owners(&index);
        if own.is_some() != (near == Some(part.node())) || own.is_some() != owners.contains(&part.node()) {
            return wrong("wrong owners");
        }
        Ok(())
    }

    /// The cells of a section, which must neither be empty nor extend beyond the part.
    fn inside(&self, section: &Section) -> Result<Vec<usize>, String> {
        let mut dims = section.starts.iter().zip(&section.extents).zip(self.part.extents());
        if section.is_empty() || dims.any(|((start, extent), cells)| start + extent > *cells) {
            return Err(format!("{section} of a part of {:?} cells", self.part.extents()));
        }
        Ok(section.iter().map(|local| self.offset(&local)).collect())
    }
}

/// All cells of memory of these extents.
pub(crate) fn all(extents: &[usize]) -> Section {
    Section { starts: vec![0; extents.len()], extents: extents.to_vec() }
}
