//! A rank's own memory: registering, reading and writing it.

use super::{
    core::Core,
    memory::Loc,
    operation::same_length,
    program::ProgramMemory,
    provider::{Keys, Me, VirtRank},
    ranks::Status,
    world::World,
};
use rdma_fabric::{
    Existing, FabricError, Keyring, OwnedMemory, Rank, Region, RegionKey, RemoteAddr, Result,
    provider::{Lender, Loan, OneThread, Place},
};
use std::{cell::RefMut, fmt, rc::Rc};

/// Keeps memory registered. Dropping this deregisters the memory.
struct Registration {
    world: Rc<World>,
    rank: u32,
    /// The index of its key. The place has the same generation for as long as this lives.
    index: u32,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Registration { world, rank, index } = self;
        let mut core = world.core();
        let bytes = core.memory.deregister(*rank, *index);
        core.ranks.return_memory(*rank, bytes);
        // A wait on this memory now ends with an error.
        if core.ranks.is_watching(*rank) {
            core.ranks.wake(*rank);
        }
        core.ranks.wake_helpers_of(*rank);
    }
}

/// The value that keeps a region registered.
struct Keep(OneThread<Registration>);

/// The value that keeps a region of existing memory registered.
struct KeepExisting(OneThread<Registration>, OwnedMemory);

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.0.index, Rank::new(self.0.rank))
    }
}

impl fmt::Debug for KeepExisting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {:?}", self.0.index, Rank::new(self.0.rank), self.1)
    }
}

impl Me {
    /// Returns whether the region is one of this rank's.
    pub(super) fn owns(&self, region: &Region) -> bool {
        let keep = region.registration::<Keep>().map(|keep| &keep.0);
        let keep = keep.or_else(|| region.registration::<KeepExisting>().map(|keep| &keep.0));
        keep.is_some_and(|keep| keep.rank == self.rank && Rc::ptr_eq(&keep.world, &self.world))
    }

    pub(super) fn alloc(&self, bytes: usize) -> Result<Region> {
        let (registration, key) = self.register(bytes)?;
        Ok(Region::new(key, bytes, None, Keep(registration)))
    }

    /// Registers memory of another process. Takes no virtual time.
    pub(super) fn register_program(&self, memory: Box<dyn ProgramMemory>, bytes: usize) -> Result<Region> {
        let mut core = self.world.core();
        self.reserve(&mut core, bytes)?;
        let key = core.memory.register_program(self.rank, bytes, memory);
        let (registration, key) = self.registered(core, key, bytes)?;
        Ok(Region::new(key, bytes, Some(Existing::Direct), Keep(registration)))
    }

    /// As [`Me::alloc_symmetric`] for memory of another process.
    pub(super) fn join_program(&self, memory: Box<dyn ProgramMemory>, bytes: usize) -> Result<Region> {
        let region = self.alloc_symmetric(bytes, None)?;
        self.world.core().memory.join_program(self.rank, region.key(), memory);
        Ok(region)
    }

    pub(super) fn alloc_symmetric(&self, bytes: usize, ring: Option<&Keyring>) -> Result<Region> {
        let mut core = self.world.core();
        self.reserve(&mut core, bytes)?;
        let number = core.ranks.next_symmetric(self.rank);
        let terms = ring.map(Keyring::next_terms);
        let key = core.memory.join_symmetric(self.rank, number, bytes, terms);
        let (registration, key) = self.registered(core, key, bytes)?;
        if let Some(ring) = ring {
            ring.add(key);
        }
        Ok(Region::new(key, bytes, None, Keep(registration)))
    }

    fn register(&self, bytes: usize) -> Result<(OneThread<Registration>, RegionKey)> {
        let mut core = self.world.core();
        self.reserve(&mut core, bytes)?;
        let key = core.memory.register(self.rank, bytes);
        self.registered(core, key, bytes)
    }

    fn reserve(&self, core: &mut Core, bytes: usize) -> Result<()> {
        core.ranks.reserve_memory(self.rank, bytes, core.machine.memory_limit())
    }

    /// Returns the registration of reserved memory that received a key, or undoes the reservation.
    fn registered(
        &self,
        mut core: RefMut<'_, Core>,
        key: Result<RegionKey>,
        bytes: usize,
    ) -> Result<(OneThread<Registration>, RegionKey)> {
        match key {
            Ok(key) => {
                let Me { world, rank } = self.clone();
                Ok((OneThread::new(Registration { world, rank, index: key.index }), key))
            }
            Err(error) => {
                core.ranks.return_memory(self.rank, bytes);
                Err(error)
            }
        }
    }

    /// Registers existing memory, which the network accesses like any region. Takes no virtual
    /// time.
    pub(super) fn adopt(&self, memory: OwnedMemory) -> Result<Region, (FabricError, OwnedMemory)> {
        let bytes = memory.len();
        let (registration, key) = match self.register(bytes) {
            Ok(registered) => registered,
            Err(error) => return Err((error, memory)),
        };
        let whole = Loc::new(self.rank, key, 0, bytes as u64);
        self.world.core().memory.copy_in(&whole, memory.bytes());
        Ok(Region::new(key, bytes, Some(Existing::Direct), KeepExisting(registration, memory)))
    }

    /// Returns registered memory to its owner. Operations that arrive later find the region
    /// deregistered.
    pub(super) fn release(&self, region: Region) -> Result<OwnedMemory> {
        let key = region.key();
        let Ok(KeepExisting(registration, mut memory)) = region.into_registration::<KeepExisting>() else {
            return Err(FabricError::Unsupported { feature: &"giving memory back that was allocated" });
        };
        let whole = Loc::new(registration.rank, key, 0, memory.len() as u64);
        registration.world.core().memory.copy_out(&whole, memory.bytes_mut());
        Ok(memory)
    }

    #[inline]
    pub(super) fn read(&self, from: &Loc, into: &mut [u8]) -> Result<()> {
        same_length(into.len() as u64, from.len)?;
        let core = self.world.core();
        core.check(from)?;
        core.memory.copy_out(from, into);
        Ok(())
    }

    #[inline]
    pub(super) fn write(&self, to: &Loc, from: &[u8]) -> Result<()> {
        same_length(from.len() as u64, to.len)?;
        let mut core = self.world.core();
        core.check(to)?;
        core.memory.write_own(to, from);
        self.written(&mut core, to);
        Ok(())
    }

    /// Notifies waits for memory that this rank has written.
    #[inline]
    fn written(&self, core: &mut Core, to: &Loc) {
        if core.ranks.has_helpers() {
            self.wake_others(core, to);
        } else {
            core.ranks.touched(to);
        }
    }
}

impl<K: Keys> Lender for VirtRank<K> {
    fn lend(&self, place: &Place, writes: bool) -> Option<Loan> {
        let (of, mut core) = (self.me.loc(place).ok()?, self.me.world.core());
        core.check(&of).ok()?;
        core.memory.lend(&of, writes).map(Loan::new)
    }

    fn give_back(&self, place: &Place, loan: Loan) {
        let Ok(to) = self.me.loc(place) else { return };
        let mut core = self.me.world.core();
        if core.check(&to).is_ok() {
            core.memory.give_back(&to, loan.into_words());
            self.me.written(&mut core, &to);
        }
    }
}

impl Core {
    /// Checks an address for a handle that `opens` some protected regions.
    pub(super) fn locate(
        &self,
        addr: RemoteAddr,
        len: usize,
        align: usize,
        opens: impl Fn(RegionKey) -> bool,
    ) -> Result<()> {
        match self.ranks.status_of(addr.rank.number()) {
            None => Err(FabricError::NoSuchRank { rank: addr.rank, ranks: self.ranks.len() }),
            Some(Status::Lost) => Err(FabricError::PeerLost { rank: addr.rank }),
            Some(_) if self.memory.is_locked(addr.region) && !opens(addr.region) => {
                Err(FabricError::Locked { rank: addr.rank, region: addr.region })
            }
            Some(_) => self.memory.locate(addr, len, align).map(drop),
        }
    }
}
