//! The network in the form of the event path: tables by place, computed once.
//!
//! A place is a node in the rest of the simulator: its number in the folding. Memory is a few words
//! per node.

use super::{
    Axis, Choice, Crossbar, Fold, PathId, Port, Topology, Torus,
    axes::Extent,
    route::{self, Leg, LegIndex},
};

/// The maximum number of axes of any network.
const AXES: usize = 6;

#[derive(Debug)]
pub(crate) struct Map {
    extents: Vec<Extent>,
    /// The order in which routes take the axes.
    order: Vec<Leg>,
    links: Vec<LinkWay>,
    /// Links by axis and direction (down, up).
    link_along: [[u8; 2]; AXES],
    coordinates: Vec<[u16; AXES]>,
    /// The difference in node number between neighbours along each axis.
    strides: Vec<u32>,
    /// Places by node number; empty if both are the same.
    places: Vec<u32>,
    choice: Option<Choice>,
    /// The crossbars, if the network is made of them. Legs and ways of links are then unused.
    crossbar: Option<Crossbar>,
}

/// Where a link leads.
#[derive(Clone, Copy, Debug)]
struct LinkWay {
    axis: u8,
    direction: Direction,
    /// The neighbour's link that leads back.
    back: u8,
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Up,
    Down,
    /// To the other node of an axis of length two.
    Across,
}

/// A message's way to its target and back, in hops, and the path it takes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trip {
    pub(crate) there: u32,
    pub(crate) back: u32,
    pub(crate) path: PathId,
}

/// The next link of a packet, and the leg to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) link: u8,
    pub(crate) leg: LegIndex,
}

impl Hop {
    /// Returns whether the hop is inside the target's group, after the way between groups, where
    /// in-group links are used a second time.
    #[inline]
    pub(crate) fn is_second_leg(self) -> bool {
        self.leg >= route::TARGET_GROUP
    }
}

impl Map {
    pub(crate) fn new(topology: &Topology) -> Self {
        match topology {
            Topology::Torus(torus) => Self::plain(torus),
            Topology::Tofu(fold, choice) => Self::tofu(fold, choice),
            Topology::Crossbar(crossbar) => Self::of_crossbars(*crossbar),
        }
    }

    fn plain(torus: &Torus) -> Self {
        let extents = torus.extents().to_vec();
        let axes = 0..extents.len() as u8;
        let way = |axis, direction, back| LinkWay { axis, direction, back };
        let links = axes
            .clone()
            .flat_map(|axis| [way(axis, Direction::Up, 2 * axis + 1), way(axis, Direction::Down, 2 * axis)]);
        let coordinates = (0..torus.nodes()).map(|node| torus.place(node));
        Map {
            order: axes.map(|axis| Leg { axis, by_path: false }).collect(),
            links: links.collect(),
            link_along: std::array::from_fn(|axis| [2 * axis as u8 + 1, 2 * axis as u8]),
            coordinates: coordinates.collect(),
            strides: strides(&extents),
            extents,
            places: Vec::new(),
            choice: None,
            crossbar: None,
        }
    }

    fn of_crossbars(crossbar: Crossbar) -> Self {
        let place = |node| {
            let [i, j] = crossbar.coordinates(node);
            [i as u16, j as u16, 0, 0, 0, 0]
        };
        Map {
            extents: crossbar.sides().map(|length| Extent { length, wraps: false }).to_vec(),
            order: Vec::new(),
            links: Vec::new(),
            link_along: [[0; 2]; AXES],
            coordinates: (0..crossbar.nodes()).map(place).collect(),
            strides: Vec::new(),
            places: Vec::new(),
            choice: None,
            crossbar: Some(crossbar),
        }
    }

    fn tofu(fold: &Fold, choice: &Choice) -> Self {
        let shape = fold.shape();
        let extents = Axis::ALL.map(|axis| shape.extent(axis)).to_vec();
        let links = Port::ALL.map(|port| {
            let direction = match port {
                Port::A | Port::C => Direction::Across,
                _ if port == Port::along(port.axis(), true) => Direction::Up,
                _ => Direction::Down,
            };
            LinkWay { axis: port.axis() as u8, direction, back: port.back() as u8 }
        });
        let all = (0..shape.nodes()).filter_map(|place| fold.coordinates(place).ok());
        let mut map = Map {
            order: route::TOFU.to_vec(),
            links: links.to_vec(),
            link_along: Axis::ALL.map(|axis| [false, true].map(|up| Port::along(axis, up) as u8)),
            coordinates: all.map(|at| <[u8; 6]>::from(at).map(u16::from)).collect(),
            strides: strides(&extents),
            extents,
            places: Vec::new(),
            choice: Some(choice.clone()),
            crossbar: None,
        };
        let mut places = vec![0; map.coordinates.len()];
        for (place, at) in map.coordinates.iter().enumerate() {
            places[map.node(at) as usize] = place as u32;
        }
        if places.iter().enumerate().any(|(node, &place)| node != place as usize) {
            map.places = places;
        }
        map
    }

    /// Returns the number of links of a place.
    pub(crate) fn links(&self) -> u8 {
        self.crossbar.map_or(self.links.len() as u8, |crossbar| crossbar.links())
    }

    /// Returns the number of places: nodes and, after them, the switches between them, if there are
    /// any.
    pub(crate) fn places(&self) -> u32 {
        self.crossbar.map_or(self.coordinates.len() as u32, |crossbar| crossbar.places())
    }

    /// Returns whether a place is a switch and not a node.
    pub(crate) fn is_switch(&self, place: u32) -> bool {
        self.crossbar.is_some_and(|crossbar| crossbar.is_switch(place))
    }

    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns a node's coordinate along an axis.
    pub(super) fn along(&self, node: u32, axis: usize) -> u32 {
        self.coordinates[node as usize][axis].into()
    }

    /// Returns the number of virtual channels of a link: two for the dateline rule, and two more if
    /// routes have a second in-group leg.
    pub(crate) fn channels(&self) -> u8 {
        if self.order.len() > usize::from(route::TARGET_GROUP) { 4 } else { 2 }
    }

    #[inline]
    pub(crate) fn hops(&self, from: u32, to: u32) -> u32 {
        if from == to {
            return 0;
        }
        if let Some(crossbar) = &self.crossbar {
            return crossbar.hops(from, to);
        }
        self.distance(&self.coordinates[from as usize], &self.coordinates[to as usize])
    }

    #[inline]
    fn distance(&self, a: &[u16; AXES], b: &[u16; AXES]) -> u32 {
        self.extents.iter().enumerate().map(|(i, extent)| extent.steps(a[i].into(), b[i].into()).0).sum()
    }

    /// Returns the way of a message between the places of two ranks, along the message's `chosen`
    /// path if it has one (only Tofu's shapes have paths). Replies take the default path.
    #[inline]
    pub(crate) fn trip(&self, from: u32, to: u32, ranks: (u32, u32), chosen: Option<PathId>) -> Trip {
        let back = self.hops(from, to);
        match &self.choice {
            None => Trip { there: back, back, path: PathId::default() },
            Some(choice) => self.tofu_trip(choice, from, to, ranks, chosen, back),
        }
    }

    fn tofu_trip(
        &self,
        choice: &Choice,
        from: u32,
        to: u32,
        ranks: (u32, u32),
        chosen: Option<PathId>,
        back: u32,
    ) -> Trip {
        let (at, goal) = (&self.coordinates[from as usize], &self.coordinates[to as usize]);
        let usual = || choice.path(ranks.0, ranks.1, PathId::pack(goal[3], goal[4], goal[5]));
        let path = chosen.unwrap_or_else(usual);
        let mut via = *at;
        for axis in [Axis::A, Axis::B, Axis::C] {
            via[axis.index()] = path.along(axis);
        }
        let there = if from == to { 0 } else { self.distance(at, &via) + self.distance(&via, goal) };
        Trip { there, back, path }
    }

    /// Returns the next link of a packet at `node`, or `None` if it has arrived.
    #[inline]
    pub(crate) fn next(&self, node: u32, to: u32, path: PathId, leg: LegIndex) -> Option<Hop> {
        if let Some(crossbar) = &self.crossbar {
            return crossbar.next(node, to).map(|link| Hop { link, leg: 0 });
        }
        let (at, goal) = (&self.coordinates[node as usize], &self.coordinates[to as usize]);
        let (leg, axis, goal) = route::next_leg(&self.order, leg, at, goal, path)?;
        let axis = usize::from(axis);
        let (_, up) = self.extents[axis].steps(at[axis].into(), goal.into());
        Some(Hop { link: self.link_along[axis][usize::from(up)], leg })
    }

    /// Returns the leg of a packet that stays on its node.
    pub(crate) fn last_leg(&self) -> LegIndex {
        self.order.len() as LegIndex
    }

    /// Returns the node to which a link leads, and whether the link is the wrap-around of a ring.
    /// At the end of a line, the node is the line's other end.
    pub(crate) fn over(&self, node: u32, link: u8) -> (u32, bool) {
        if let Some(crossbar) = &self.crossbar {
            return (crossbar.across(node, link), false);
        }
        let LinkWay { axis, direction, .. } = self.links[usize::from(link)];
        let axis = usize::from(axis);
        let mut at = self.coordinates[node as usize];
        let up = match direction {
            Direction::Up => true,
            Direction::Down => false,
            Direction::Across => at[axis] == 0,
        };
        let (next, wraps) = self.extents[axis].step(at[axis].into(), up);
        at[axis] = next as u16;
        let node = self.node(&at);
        let closes = wraps && !matches!(direction, Direction::Across);
        (self.places.get(node as usize).copied().unwrap_or(node), closes)
    }

    /// Returns the node that sends to this one over a link.
    pub(crate) fn behind(&self, node: u32, link: u8) -> u32 {
        match &self.crossbar {
            Some(crossbar) => crossbar.across(node, link),
            None => self.over(node, self.links[usize::from(link)].back).0,
        }
    }

    /// Returns the heap memory of all tables, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.coordinates)
            + size_of_val(&*self.places)
            + size_of_val(&*self.links)
            + size_of_val(&*self.order)
    }

    fn node(&self, at: &[u16; AXES]) -> u32 {
        self.strides.iter().zip(at).map(|(stride, &at)| stride * u32::from(at)).sum()
    }
}

fn strides(extents: &[Extent]) -> Vec<u32> {
    let mut strides = vec![1; extents.len()];
    for axis in (0..extents.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * extents[axis + 1].length;
    }
    strides
}
