//! VCQs: control queues behind handles.
//!
//! A handle names a place in a table and the number of times that it was used, so a handle that
//! outlived its VCQ is recognised. Each VCQ has a lock; calls of several threads on one VCQ follow
//! each other, whether or not it was created as thread-safe.

use crate::{
    caps,
    failure::{Code, Outcome, of_fabric},
    ids::{CONTEXTS, FIRST_CONTEXT, Peers, VcqId},
    job::{Job, job},
    memory::Registrations,
    strict::VcqChecks,
};
use rdma_fabric::{
    FabricError,
    control_queue::{Queue, QueueError, QueueMode, QueueSpec},
    provider::{Turn, TurnCell},
};
use std::{
    sync::OnceLock,
    thread::{self, ThreadId},
};

/// Flags of `utofu_create_vcq`.
const THREAD_SAFE: u64 = 1;
const EXCLUSIVE: u64 = 2;
const SESSION_MODE: u64 = 4;

/// The CQs that normal VCQs may share.
const NORMAL_CQS: [u8; 8] = [0, 4, 5, 6, 7, 8, 9, 10];
/// The CQ of VCQs with a component id.
const COMPONENT_CQ: u8 = 0;

/// An open VCQ.
#[derive(Debug)]
pub(crate) struct Vcq {
    pub(crate) job: &'static Job,
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) id: VcqId,
    pub(crate) is_session: bool,
    pub(crate) registrations: Registrations,
    /// Ids that were converted before.
    pub(crate) peers: Peers,
    /// Completions that were requested and not polled.
    pub(crate) unread_tcq: u64,
    /// Notices of own commands that were requested and not polled.
    pub(crate) unread_mrq: u64,
    /// Polls in a row that found nothing.
    pub(crate) misses: u32,
    /// The thread that may use it in strict mode; `None` if any may.
    thread: Option<ThreadId>,
    pub(crate) checks: Option<Box<VcqChecks>>,
}

// ----- the table of handles -----

/// More than a node has: 64 normal, 7 exclusive and 3 session VCQs of each TNI.
const PLACES: usize = 512;
/// Bits of a handle that name the place, counted from 1.
const PLACE_BITS: u32 = 16;

#[derive(Debug, Default)]
struct Place {
    /// The number of VCQs that this place has had.
    uses: usize,
    vcq: Option<Vcq>,
}

static TABLE: [OnceLock<TurnCell<Place>>; PLACES] = [const { OnceLock::new() }; PLACES];

#[inline]
fn enter(place: &TurnCell<Place>) -> Turn<'_, Place> {
    place.enter().expect("any thread may use it")
}

#[cold]
fn no_such(handle: usize) -> Code {
    Code::INVALID_VCQ_HDL.because(format_args!("{handle:#x} is not the handle of a VCQ"))
}

/// Calls `f` with the place of a handle and its VCQ's uses.
#[inline]
fn with_place<R>(handle: usize, f: impl FnOnce(&mut Place) -> Outcome<R>) -> Outcome<R> {
    let place = (handle & ((1 << PLACE_BITS) - 1)).wrapping_sub(1);
    let Some(place) = TABLE.get(place).and_then(OnceLock::get) else { return Err(no_such(handle)) };
    let mut place = enter(place);
    if place.uses != handle >> PLACE_BITS || place.vcq.is_none() {
        return Err(no_such(handle));
    }
    f(&mut place)
}

/// Calls `f` with the VCQ of a handle; `call` is the name of the C function, for messages.
///
/// # Errors
/// [`Code::INVALID_VCQ_HDL`], and those of `f`.
#[inline]
pub(crate) fn with<R>(handle: usize, call: &'static str, f: impl FnOnce(&mut Vcq) -> Outcome<R>) -> Outcome<R> {
    with_place(handle, |place| {
        let Some(vcq) = &mut place.vcq else { return Err(no_such(handle)) };
        if vcq.checks.is_some() {
            vcq.check_thread(call);
        }
        f(vcq)
    })
}

/// Adds a VCQ to the table, and returns its handle.
fn insert(vcq: Vcq) -> Outcome<usize> {
    let mut vcq = Some(vcq);
    for (number, place) in TABLE.iter().enumerate() {
        let mut place = enter(place.get_or_init(|| TurnCell::of_any_thread(Place::default())));
        if place.vcq.is_none() {
            place.uses += 1;
            place.vcq = vcq.take();
            return Ok(place.uses << PLACE_BITS | (number + 1));
        }
    }
    Err(Code::FULL.because(format_args!("{PLACES} VCQs are open")))
}

/// Closes a VCQ. Its commands that have not started are dropped.
pub(crate) fn free(handle: usize) -> Outcome<()> {
    let vcq = with_place(handle, |place| Ok(place.vcq.take()))?;
    let Some(Vcq { queue, registrations, .. }) = vcq else { return Err(no_such(handle)) };
    // Errors of commands without a requested notice do not concern this call.
    let _ = queue.close();
    drop(registrations);
    Ok(())
}

// ----- creation -----

/// Creates a VCQ on a TNI, and returns its handle.
pub(crate) fn create(tni: u16, component: Option<u16>, flags: u64) -> Outcome<usize> {
    let job = job()?;
    let tni = caps::tni(tni)?;
    if flags & !(THREAD_SAFE | EXCLUSIVE | SESSION_MODE) != 0 {
        return Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits")));
    }
    let mode = match (flags & SESSION_MODE != 0, flags & EXCLUSIVE != 0) {
        (true, _) => QueueMode::Session,
        (false, true) => QueueMode::Exclusive,
        (false, false) => QueueMode::Normal,
    };
    let queue = match component {
        Some(component) if component >= caps::COMPONENTS => {
            return Err(Code::INVALID_CMP_ID.because(format_args!("{component} is not below {}", caps::COMPONENTS)));
        }
        Some(_) if mode != QueueMode::Normal => {
            return Err(
                Code::NOT_SUPPORTED.because("a VCQ with a component id is neither exclusive nor in session mode")
            );
        }
        Some(component) => open(job, tni, mode, Some((COMPONENT_CQ, component as u8)))?.ok_or(Code::USED),
        None if mode == QueueMode::Normal => first_free(job, tni)?.ok_or(Code::FULL),
        None => open(job, tni, mode, None)?.ok_or(Code::FULL),
    };
    let queue = queue.map_err(|code| code.because(format_args!("no such VCQ of TNI {tni} is free")))?;
    let checks = job.settings.strict.then(Box::default);
    let thread = (flags & THREAD_SAFE == 0).then(|| thread::current().id());
    insert(Vcq {
        job,
        id: VcqId::of(queue.id()),
        queue,
        is_session: mode == QueueMode::Session,
        registrations: Registrations::default(),
        peers: Peers::default(),
        unread_tcq: 0,
        unread_mrq: 0,
        misses: 0,
        thread,
        checks,
    })
}

/// Opens a normal queue on the first CQ with a free context. Contexts are taken from the highest
/// down: those of components, of which programs use few, are counted from the lowest up.
fn first_free(job: &Job, tni: u8) -> Outcome<Option<Box<dyn Queue>>> {
    for cq in NORMAL_CQS {
        for context in (0..CONTEXTS).rev() {
            let opened = open(job, tni, QueueMode::Normal, Some((cq, context)))?;
            if opened.is_some() {
                return Ok(opened);
            }
        }
    }
    Ok(None)
}

/// Opens a queue, as a context of a CQ if that is given; `None` if it is in use.
fn open(job: &Job, tni: u8, mode: QueueMode, at: Option<(u8, u8)>) -> Outcome<Option<Box<dyn Queue>>> {
    let spec = QueueSpec::new(mode).on(tni).depth(job.settings.toq).checked(false);
    let spec = QueueSpec { mrq_depth: job.settings.mrq, number: at.map(|(cq, _)| cq), ..spec };
    match job.open(spec, at.map(|(_, context)| context)) {
        Ok(queue) => Ok(Some(queue)),
        Err(FabricError::Queue(error)) if matches!(*error, QueueError::InUse(_) | QueueError::NoneFree(_)) => Ok(None),
        Err(error) => Err(of_fabric(&error)),
    }
}

/// Returns the id of the VCQ with a component id at some coordinates, which need not exist.
pub(crate) fn component_id(coords: crate::torus::Coords, tni: u16, cq: u16, component: u16) -> Outcome<VcqId> {
    let tni = caps::tni(tni)?;
    if cq >= 11 {
        return Err(Code::INVALID_CQ_ID.because(format_args!("{cq} is not below 11")));
    }
    if component >= caps::COMPONENTS {
        return Err(Code::INVALID_CMP_ID.because(format_args!("{component} is not below {}", caps::COMPONENTS)));
    }
    let [_, _, _, a, b, c] = coords;
    if crate::torus::path_id([a, b, c]).is_none() {
        return Err(Code::INVALID_COORDS.because(format_args!("no node is at {coords:?}")));
    }
    Ok(VcqId::new(coords, tni, cq as u8, FIRST_CONTEXT + component as u8))
}

impl Vcq {
    #[cold]
    fn check_thread(&mut self, call: &'static str) {
        if self.thread.is_some_and(|thread| thread != thread::current().id()) {
            let message = "a thread uses a VCQ of another one, which was not created as thread-safe";
            self.strict(call, format_args!("{message}"));
            // Once.
            self.thread = None;
        }
    }
}
