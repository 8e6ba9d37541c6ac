//! Barrier gates.

use crate::{
    caps,
    failure::{Code, Outcome, of_fabric},
    ids::{vbg_from_bits, vbg_to_bits},
    job::{Job, job},
    torus,
};
use core::{cell::Cell, ffi::c_int};
use rdma_fabric::{
    Deps,
    barrier::{BarrierUnit, GateId, GateValue, Progress, ReduceOp, Values, Wiring},
};

/// Flag of `utofu_alloc_vbg`.
const THREAD_SAFE: u64 = 1;
/// Gates that one allocation can have: a start/end gate, and the relay gates of a TNI.
const MOST: usize = 1 + 32;

/// `struct utofu_vbg_setting`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Setting {
    vbg_id: u64,
    src_lcl_vbg_id: u64,
    src_rmt_vbg_id: u64,
    dst_lcl_vbg_id: u64,
    dst_rmt_vbg_id: u64,
    dst_path_coords: [u8; 3],
}

fn unit(job: &Job) -> Outcome<&dyn BarrierUnit> {
    job.machine.gates().ok_or(Code::NOT_AVAILABLE)
}

fn no_flags(flags: u64) -> Outcome<()> {
    if flags == 0 { Ok(()) } else { Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits"))) }
}

/// Allocates gates, and calls `give` with the number and id of each: first a start/end gate, then
/// relay gates.
pub(crate) fn alloc(tni: u16, count: usize, flags: u64, mut give: impl FnMut(usize, u64)) -> Outcome<()> {
    let job = job()?;
    caps::tni(tni)?;
    no_flags(flags & !THREAD_SAFE)?;
    if count == 0 {
        return Err(Code::INVALID_NUMBER.because("no gate was asked for"));
    }
    if count > MOST {
        return Err(Code::FULL.because(format_args!("{count} gates are more than {MOST}")));
    }
    let gates = unit(job)?.take(count - 1).map_err(|error| of_fabric(&error))?;
    gates.iter().enumerate().for_each(|(number, gate)| give(number, vbg_to_bits(*gate, tni)));
    Ok(())
}

/// Returns the gate of this rank that an id names.
fn own(job: &Job, id: u64) -> Outcome<(GateId, u16)> {
    match vbg_from_bits(id)? {
        Some((gate, tni)) if gate.rank() == job.machine.rank() => Ok((gate, tni)),
        _ => Err(Code::INVALID_VBG_ID.because(format_args!("{id:#x} is not a gate of this process"))),
    }
}

/// Frees gates.
pub(crate) fn free(ids: impl Iterator<Item = u64>) -> Outcome<()> {
    let job = job()?;
    let gates: Vec<GateId> = ids.map(|id| Ok(own(job, id)?.0)).collect::<Outcome<_>>()?;
    unit(job)?.free(&gates);
    Ok(())
}

/// Sets the wires of gates.
pub(crate) fn set(settings: impl Iterator<Item = Setting>) -> Outcome<()> {
    let job = job()?;
    let wiring = |setting: Setting| {
        let (gate, tni) = own(job, setting.vbg_id)?;
        let local = |id| match vbg_from_bits(id)? {
            Some((_, other)) if other != tni => {
                Err(Code::INVALID_VBG_ID.because(format_args!("{id:#x} is a gate of another TNI, not of {tni}")))
            }
            end => Ok(end.map(|(gate, _)| gate)),
        };
        let remote = |id| Ok(vbg_from_bits(id)?.map(|(gate, _)| gate));
        let [first, ..] = setting.dst_path_coords;
        if first != u8::MAX && torus::path_id(setting.dst_path_coords).is_none() {
            let path = setting.dst_path_coords;
            return Err(Code::INVALID_PATH.because(format_args!("no path is {path:?}")));
        }
        Ok(Wiring {
            gate,
            source_local: local(setting.src_lcl_vbg_id)?,
            source_remote: remote(setting.src_rmt_vbg_id)?,
            destination_local: local(setting.dst_lcl_vbg_id)?,
            destination_remote: remote(setting.dst_rmt_vbg_id)?,
        })
    };
    let wirings: Vec<Wiring> = settings.map(wiring).collect::<Outcome<_>>()?;
    unit(job)?.set(&wirings).map_err(|error| of_fabric(&error))
}

/// The coordinates, TNI, gate number and further number of a gate.
pub(crate) fn info(id: u64) -> Outcome<(torus::Coords, u16, u16, u16)> {
    let job = job()?;
    let null = || Code::INVALID_VBG_ID.because("it is the null id");
    let (gate, tni) = vbg_from_bits(id)?.ok_or_else(null)?;
    let rank = gate.rank().number();
    if rank >= job.ranks {
        return Err(Code::INVALID_VBG_ID.because(format_args!("there is no rank {rank}")));
    }
    Ok((torus::coords(rank), tni, gate.index() as u16, gate.generation() as u16))
}

/// Starts a barrier or a reduction at a start/end gate.
fn start(id: u64, flags: u64, values: Values) -> Outcome<()> {
    let job = job()?;
    no_flags(flags)?;
    let (gate, _) = own(job, id)?;
    unit(job)?.start(gate, values).map_err(|error| of_fabric(&error))
}

/// Starts a barrier.
pub(crate) fn barrier(id: u64, flags: u64) -> Outcome<()> {
    start(id, flags, Values::BARRIER)
}

/// Starts a reduction of `values`.
pub(crate) fn reduce<T: GateValue>(id: u64, op: c_int, values: &[T], flags: u64) -> Outcome<()> {
    use ReduceOp::*;
    let ops = [Barrier, BitAnd, BitOr, BitXor, Max, MaxLoc, Sum, BfpSum];
    let op = ops.into_iter().find(|known| *known as c_int == op);
    let op = op.ok_or_else(|| Code::INVALID_OP.because("there is no such operation"))?;
    let values = Values::new(op, values).map_err(|error| crate::failure::of_gate(&error).because(&error))?;
    start(id, flags, values)
}

/// Returns the result of a gate's operation; `None` if no gate signals it.
pub(crate) fn poll(id: u64, flags: u64) -> Outcome<Option<Values>> {
    thread_local! {
        /// Polls of this thread in a row that found nothing.
        static MISSES: Cell<u32> = const { Cell::new(0) };
    }
    let job = job()?;
    no_flags(flags)?;
    let (gate, _) = own(job, id)?;
    match unit(job)?.test(gate, Deps::All) {
        Ok(Progress::Completed(values)) => {
            MISSES.set(0);
            Ok(values)
        }
        Ok(Progress::NotCompleted) => {
            MISSES.set(MISSES.get().saturating_add(1));
            job.pause(MISSES.get());
            Err(Code::NOT_COMPLETED)
        }
        Err(error @ (rdma_fabric::FabricError::PeerLost { .. } | rdma_fabric::FabricError::PeersLeft)) => {
            Err(Code::BARRIER_OTHER.because(error))
        }
        Err(error) => Err(of_fabric(&error)),
    }
}
