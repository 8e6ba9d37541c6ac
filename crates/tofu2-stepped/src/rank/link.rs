//! The connection of a rank to the simulator.

use super::deferred::Deferred;
use crate::wire::{Channel, FabricCall, Received, Reply, Request, Wire};
use rdma_fabric::{FabricError, Rank, Result};
use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};
use tofu2_shm::park_by;

/// The connection, and the rank's knowledge of the simulation.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rank: Rank,
    pub(super) ranks: usize,
    channel: Mutex<Channel>,
    /// 1 + the number of a rank that was lost, or 0.
    lost: AtomicU32,
    /// The number of regions that have been deregistered, according to the last reply.
    deregistered: AtomicU64,
    deferred: Mutex<Deferred>,
}

impl Link {
    pub(super) fn new(rank: Rank, ranks: usize, channel: Channel) -> Self {
        let (channel, deferred) = (Mutex::new(channel), Mutex::default());
        Link { rank, ranks, channel, lost: AtomicU32::new(0), deregistered: AtomicU64::new(0), deferred }
    }

    /// Returns a rank that was lost according to the last reply, if any was.
    #[inline]
    pub(super) fn lost(&self) -> Option<Rank> {
        self.lost.load(Relaxed).checked_sub(1).map(Rank::new)
    }

    /// Returns a number that changes whenever a region of any rank may have been deregistered.
    pub(super) fn deregistered(&self) -> u64 {
        self.deregistered.load(Acquire)
    }

    // A panic leaves it as it was before or after a call.
    pub(super) fn deferred(&self) -> MutexGuard<'_, Deferred> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and receives its reply, whose type it determines. A future that does so makes the
    /// `block_on` that polls it park in the simulator.
    pub(super) fn call<T: Wire>(self: &Arc<Self>, request: &Request) -> Result<T> {
        park_by(self);
        self.exchange(request)
    }

    /// Performs a call of the rank's fabric.
    pub(super) fn fabric<T: Wire>(self: &Arc<Self>, call: FabricCall) -> Result<T> {
        self.call(&Request::Fabric { call })
    }

    /// As [`Link::call`], except that the future that calls does not wait for the simulator.
    pub(super) fn exchange<T: Wire>(&self, request: &Request) -> Result<T> {
        let is_still = matches!(request, Request::Fabric { call } if !matches!(call, FabricCall::Park { .. }));
        if !is_still {
            self.deferred().time_passes();
        }
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        channel.send(request).map_err(failed)?;
        let Reply { lost, deregistered, outcome } = match channel.receive().map_err(failed)? {
            Received::Message(reply) => reply,
            Received::Nothing | Received::Closed => {
                return Err(FabricError::System { call: &"reach the simulator, which has ended", errno: 0 });
            }
        };
        if let Some(lost) = lost {
            self.lost.store(lost.number() + 1, Relaxed);
        }
        // Release: pairs with the acquire of the threads that compare it.
        self.deregistered.store(deregistered, Release);
        outcome
    }

    /// Sends a request that has no reply. A simulator that has ended is noticed by the next call.
    pub(super) fn tell(&self, call: FabricCall) {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = channel.send(&Request::Fabric { call });
    }
}

fn failed(error: io::Error) -> FabricError {
    FabricError::System { call: &"reach the simulator", errno: error.raw_os_error().unwrap_or(0) }
}
