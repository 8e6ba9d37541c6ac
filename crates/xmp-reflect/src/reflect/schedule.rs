//! Schedules: the work of a reflect of given arrays and arguments, prepared once.

use super::{Explanation, Line, Reflect, Transport, transport::Choice, windows::Windows};
use crate::{
    Array, Element, Mapping, NodeSet, Result, Section, XmpError,
    array::Cells,
    plan::{Plan, Transfer},
};
use core::any::Any;
use prdma_offload::{Buffer, Claims, Layout, Point, Request, exchange_init};

/// An array that a schedule can have, of any element type: every [`Array`].
pub trait Reflected: Cells {}

impl<T: Element> Reflected for Array<T> {}

/// One node's exchange in a reflect, ready to be started repeatedly. All nodes create it together;
/// afterwards a node depends only on its neighbours.
pub struct Schedule {
    node: usize,
    transport: Transport,
    why: String,
    sends: Vec<Line>,
    receives: Vec<Line>,
    carrier: Carrier,
    /// The addition of a `reduce_shadow`: an [`Adding`] of the array's elements.
    adding: Option<Box<dyn Finish>>,
    /// Whether `adding` is due: an iteration has been started.
    due: bool,
}

impl core::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Schedule { node, transport, sends, receives, .. } = self;
        let (sends, receives) = (sends.len(), receives.len());
        write!(f, "Schedule(node {node}, {transport}, {sends} sends, {receives} receives)")
    }
}

/// The action of a schedule when all cells have arrived.
trait Finish: Any + Send + Sync {
    fn finish(&self) -> Result<()>;
}

/// Adds the received cells, which are stored one after another, to these sections of an array.
struct Adding<T: Element> {
    array: Array<T>,
    received: Buffer<T>,
    sections: Vec<Section>,
    add: fn(T, T) -> T,
}

impl<T: Element> Finish for Adding<T> {
    fn finish(&self) -> Result<()> {
        self.array.add(&self.received, &self.sections, self.add)
    }
}

/// The mechanism that moves the cells.
enum Carrier {
    Request(Box<Request>),
    Windows(Box<Windows>),
}

/// A node's part of a schedule, before the nodes agree.
struct Prepared {
    sends: Vec<Line>,
    receives: Vec<Line>,
    points: [Vec<Point>; 2],
}

impl Schedule {
    /// Creates a schedule that updates the shadows of several arrays together. Their dimensions and
    /// mappings may differ if the reflect specifies no widths, or one for each dimension of every
    /// array. Collective over the node set.
    ///
    /// # Errors
    /// As [`NodeSet::reflect`].
    pub async fn new(set: &mut NodeSet, arrays: &[&dyn Reflected], reflect: &Reflect) -> Result<Self> {
        let asked = reflect.transport().unwrap_or(set.transport);
        let choice = asked.chosen(set.fabric());
        let Choice { transport, why, options } = choice;
        let prepared = set.admits(transport).and_then(|()| Prepared::new(set, arrays, reflect, |plan| plan));
        let mappings: Vec<&Mapping> = arrays.iter().map(|array| array.mapping()).collect();
        let prepared = set.agree("arguments of a reflect", (mappings, reflect, transport), prepared).await?;
        if options.is_some() {
            return Schedule::make(set, prepared, choice).await;
        }
        let (node, Prepared { sends, receives, points: [out, inn] }) = (set.me(), prepared);
        let again = arrays.iter().map(|array| array.again()).collect::<Vec<_>>();
        let owned: Vec<(Mapping, _)> =
            arrays.iter().map(|array| (array.mapping().clone(), reflect.widths_of(array.mapping()))).collect();
        let corners = reflect.corners_asked();
        let plan_at = move |array: usize, node: usize| {
            let (mapping, widths) = &owned[array];
            Ok(Plan::new(mapping, node, widths, corners)?)
        };
        let (lines, claims) = ((&sends[..], &receives[..]), Claims::new(&out, &inn));
        let windows = Windows::new(set, transport, again, lines, claims, &plan_at).await?;
        let packed = |mut lines: Vec<Line>| {
            lines.iter_mut().for_each(|line| line.packed = !windows.is_direct());
            lines
        };
        let (sends, receives) = (packed(sends), packed(receives));
        let carrier = Carrier::Windows(Box::new(windows));
        Ok(Schedule { node, transport, why: why.into(), sends, receives, carrier, adding: None, due: false })
    }

    /// Creates a schedule that adds the shadows of an array to the elements of which they are
    /// copies.
    pub(super) async fn reducing<T: Element>(
        set: &mut NodeSet,
        array: &Array<T>,
        reflect: &Reflect,
        add: fn(T, T) -> T,
    ) -> Result<Self> {
        let asked = reflect.transport().unwrap_or(set.transport);
        let choice = asked.chosen(set.fabric());
        let prepared = set.admits(choice.transport);
        let prepared = prepared.and_then(|()| Prepared::new(set, &[array], reflect, Plan::reversed));
        // Received pieces are stored outside the array, one after another.
        let prepared = prepared.and_then(|prepared| {
            let cells = prepared.receives.iter().map(|line| line.transfer.section.cells()).sum();
            let beside = Buffer::<T>::new(set.fabric(), cells)?;
            Ok((beside.clone(), prepared.received_in(&beside)?))
        });
        let arguments = (array.mapping(), reflect, choice.transport);
        let (beside, prepared) = set.agree("arguments of a reduce_shadow", arguments, prepared).await?;
        let sections: Vec<Section> = prepared.receives.iter().map(|line| line.transfer.section.clone()).collect();
        let mut schedule = Schedule::make(set, prepared, choice).await?;
        let adding = Adding { array: array.another(), received: beside, sections, add };
        schedule.adding = Some(Box::new(adding));
        Ok(schedule)
    }

    /// Replaces the function of a `reduce_shadow` of elements of type `T`.
    pub(super) fn add_by<T: Element>(&mut self, add: fn(T, T) -> T) {
        let adding = self.adding.as_deref_mut().map(|adding| adding as &mut dyn Any);
        if let Some(adding) = adding.and_then(|adding| adding.downcast_mut::<Adding<T>>()) {
            adding.add = add;
        }
    }

    async fn make(set: &mut NodeSet, prepared: Prepared, choice: Choice) -> Result<Self> {
        let Choice { transport, why, options } = choice;
        let Prepared { mut sends, mut receives, points: [out, inn] } = prepared;
        let Some(options) = options else {
            let why = "shadows are added up by persistent exchanges only".into();
            return Err(XmpError::Transport { transport: transport.to_string(), why });
        };
        let mut request = exchange_init(&mut set.group, out, inn, &options).await?;
        request.pack_by(set.packing.clone());
        let mut why = why.to_string();
        if let Some(obstacle) = request.obstacle() {
            why = format!("{why}; in the form {}, because {obstacle}", request.form());
        }
        for line in sends.iter_mut().chain(&mut receives) {
            line.packed = options.packs(line.blocks, line.bytes);
            if line.packed {
                line.threads = set.packing.shares(line.blocks, line.bytes).threads;
            }
        }
        let carrier = Carrier::Request(Box::new(request));
        Ok(Schedule { node: set.me(), transport, why, sends, receives, carrier, adding: None, due: false })
    }

    /// Starts an update, without waiting for other nodes, except between barriers and with
    /// [`Transport::Datatypes`]. If it is dropped half-way, a wait completes a start that was only
    /// waiting for other nodes.
    ///
    /// # Errors
    /// As [`Request::start`].
    pub async fn start(&mut self) -> Result<()> {
        match &mut self.carrier {
            Carrier::Request(request) => {
                request.start().await?;
                self.due = true;
                if self.transport == Transport::Datatypes {
                    request.issue().await?;
                }
            }
            Carrier::Windows(windows) => {
                windows.start().await?;
                self.due = true;
            }
        }
        Ok(())
    }

    /// Waits until all cells have arrived, and those that were sent may be changed. May be dropped
    /// and called again, except between barriers and over windows: there, a call that is dropped
    /// before it completes breaks the schedule.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub async fn wait(&mut self) -> Result<()> {
        match &mut self.carrier {
            Carrier::Request(request) => request.wait().await?,
            Carrier::Windows(windows) => windows.wait().await?,
        }
        self.end()
    }

    /// Returns whether the update is complete, as [`Schedule::wait`] would leave it; `true` also if
    /// none was started. Between barriers and over windows it waits.
    ///
    /// # Errors
    /// As [`Request::test`].
    pub async fn test(&mut self) -> Result<bool> {
        let over = match &mut self.carrier {
            Carrier::Request(request) => request.test().await?,
            Carrier::Windows(windows) => {
                windows.wait().await?;
                true
            }
        };
        if over {
            self.end()?;
        }
        Ok(over)
    }

    fn end(&mut self) -> Result<()> {
        if core::mem::take(&mut self.due)
            && let Some(adding) = &self.adding
        {
            return adding.finish();
        }
        Ok(())
    }

    /// Starts an update, unless one is in progress, and waits for it.
    pub(super) async fn run(&mut self) -> Result<()> {
        let active = match &self.carrier {
            Carrier::Request(request) => request.is_active(),
            Carrier::Windows(windows) => windows.is_active(),
        };
        if !active {
            self.start().await?;
        }
        self.wait().await
    }

    /// Returns a description of the pieces that the schedule moves at this node.
    pub fn explain(&self) -> Explanation {
        let Schedule { node, transport, why, sends, receives, .. } = self;
        let (sends, receives) = (sends.clone(), receives.clone());
        Explanation { node: *node, transport: *transport, why: why.clone(), sends, receives }
    }
}

impl Prepared {
    fn new(set: &NodeSet, arrays: &[&dyn Reflected], reflect: &Reflect, way: impl Fn(Plan) -> Plan) -> Result<Self> {
        let mut prepared = Prepared { sends: Vec::new(), receives: Vec::new(), points: [Vec::new(), Vec::new()] };
        let many = arrays.len() as u32;
        for (number, array) in arrays.iter().enumerate() {
            let mapping = array.mapping();
            set.executes(mapping)?;
            let widths = reflect.widths_of(mapping);
            let plan = way(Plan::new(mapping, set.me(), &widths, reflect.corners_asked())?);
            let line = |transfer: &Transfer| -> Result<Line> {
                let layout = array.layout(&transfer.section)?;
                let (bytes, blocks) = (layout.bytes(), layout.count());
                Ok(Line { array: number, transfer: transfer.clone(), bytes, blocks, packed: false, threads: 1 })
            };
            let [out, inn] = &mut prepared.points;
            for (transfers, lines, points) in
                [(&plan.sends, &mut prepared.sends, out), (&plan.receives, &mut prepared.receives, inn)]
            {
                for transfer in transfers {
                    lines.push(line(transfer)?);
                    let tag = transfer.label * many + number as u32;
                    points.push(array.point(transfer.peer, tag, &transfer.section)?);
                }
            }
        }
        Ok(prepared)
    }

    /// Returns this with everything received in a buffer, one piece after another.
    fn received_in<T: Element>(self, beside: &Buffer<T>) -> Result<Self> {
        let mut start = 0;
        let mut points = Vec::with_capacity(self.receives.len());
        for Line { transfer, .. } in &self.receives {
            let cells = transfer.section.cells();
            points.push(Point::new(transfer.peer, transfer.label, beside, Layout::contiguous::<T>(start, cells)?));
            start += cells;
        }
        let [out, _] = self.points;
        Ok(Prepared { points: [out, points], ..self })
    }
}
