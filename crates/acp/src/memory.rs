//! Registering memory, and queries about registered memory.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    Acp, AcpError, GlobalAddress, Result,
    address::{MAX_REGION_BYTES, Tag},
    directory::{OwnRegion, publish, withdraw},
    starter::Entry,
    state::State,
};
use core::{any::TypeId, future::Future};
use rdma_fabric::{FabricError, OwnedMemory, Pod, Region, Uses, provider::Boxed};

/// A region that this rank has registered: the address translation key of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(GlobalAddress);

impl Key {
    /// Returns the key in one word, never 0.
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// Restores a key from [`Key::to_bits`]; `None` for words that are not a key.
    pub fn from_bits(bits: u64) -> Option<Self> {
        GlobalAddress::from_bits(bits).filter(|address| address.offset() == 0).map(Key)
    }
}

/// A failed registration, with the memory.
pub type RegisterError<T> = rdma_fabric::RegisterError<T, AcpError>;

impl<T> From<RegisterError<T>> for AcpError {
    /// Drops the memory.
    fn from(refused: RegisterError<T>) -> Self {
        refused.error
    }
}

impl Acp {
    /// Registers `bytes` zeroed bytes, aligned to at least 64. Local: the program sends addresses
    /// to peers itself. The colour is part of every address of the region.
    ///
    /// # Errors
    /// [`AcpError::NoSuchColour`]; [`AcpError::DirectoryFull`]; [`AcpError::OutOfBounds`] beyond
    /// [`MAX_REGION_BYTES`]; [`AcpError::Fabric`] if memory runs out.
    pub fn allocate(&self, bytes: usize, colour: usize) -> Result<Key> {
        let colour = self.checked_colour(colour)?;
        self.try_with(|state| {
            let tag = state.own.take_tag(state.memory.layout(), state.me)?;
            let region = match fits(state, tag, bytes) {
                Ok(()) => self.fabric().alloc(bytes).map_err(AcpError::from),
                Err(error) => Err(error),
            };
            match region {
                Ok(region) => self.registered(state, tag, OwnRegion { region, colour, element: None }),
                Err(error) => {
                    state.own.give_back(tag);
                    Err(error)
                }
            }
        })
    }

    /// Registers memory of the program. The vector is moved in, and [`Acp::take`] returns it; until
    /// then the owner also accesses it by address.
    ///
    /// # Errors
    /// As [`Acp::allocate`], with the memory; and the errors of [`rdma_fabric::Fabric::register`].
    pub fn register<T: Pod + Send + Sync>(&self, memory: Vec<T>, colour: usize) -> Result<Key, RegisterError<T>> {
        let mut memory = Some(memory);
        let key = self.checked_colour(colour).and_then(|colour| {
            self.try_with(|state| {
                let tag = state.own.take_tag(state.memory.layout(), state.me)?;
                let given = memory.take().unwrap_or_default();
                let refused = match fits(state, tag, size_of_val(given.as_slice())) {
                    Ok(()) => match OwnedMemory::new(given).register(self.fabric(), Uses::Atomics) {
                        Ok(region) => {
                            let element = Some(TypeId::of::<T>());
                            return self.registered(state, tag, OwnRegion { region, colour, element });
                        }
                        Err((error, given)) => (error.into(), given.into_vec().ok()),
                    },
                    Err(error) => (error, Some(given)),
                };
                state.own.give_back(tag);
                memory = refused.1;
                Err(refused.0)
            })
        });
        key.map_err(|error| RegisterError { error, memory: memory.unwrap_or_default() })
    }

    /// Publishes a region under a tag that was taken.
    pub(crate) fn registered(&self, state: &mut State, tag: Tag, own: OwnRegion) -> Result<Key> {
        let entry = Entry { key: own.region.key(), bytes: own.region.len() as u64 };
        let at = state.memory.layout().entry(tag).expect("a tag that was taken has an entry");
        publish(self.fabric(), &state.world, at, entry)?;
        let key = Key(GlobalAddress::new(state.me, own.colour, tag, 0));
        state.own.insert(tag, own);
        Ok(key)
    }

    /// Unregisters a region; on every rank, addresses in it then fail with
    /// [`AcpError::NoSuchRegion`]. Allocated memory is freed, and so is a vector that was
    /// registered. Local.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRegion`].
    pub fn unregister(&self, key: Key) -> Result<()> {
        self.removed(key).map(drop)
    }

    /// Unregisters a region that was registered as a vector, waits until no operation accesses it,
    /// and returns the vector.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRegion`]; [`AcpError::Fabric`] with [`FabricError::Unsupported`] for a
    /// region that is not a vector of this type, which stays registered.
    pub fn take<T: Pod + Send + Sync>(&self, key: Key) -> impl Future<Output = Result<Vec<T>>> {
        let other = || FabricError::Unsupported { feature: &"memory of another element type" };
        let taken: Boxed<'_, Result<Vec<T>>> = Box::pin(async move {
            let element = self.with(|state| state.own.get(key.0.tag()).and_then(|own| own.element))?;
            if element != Some(TypeId::of::<T>()) {
                return Err(other().into());
            }
            let memory = OwnedMemory::take(self.removed(key)?, self.fabric()).await?;
            Ok(memory.into_vec().map_err(|_| other())?)
        });
        taken
    }

    fn removed(&self, key: Key) -> Result<Region> {
        let address = key.0;
        self.try_with(|state| {
            let own = (address.rank() == state.me).then(|| state.own.remove(address.tag())).flatten();
            let OwnRegion { region, .. } = own.ok_or(AcpError::NoSuchRegion { address })?;
            state.memory.forget(address.id());
            if let Some(at) = state.memory.layout().entry(address.tag()) {
                withdraw(self.fabric(), &state.world, at)?;
            }
            Ok(region)
        })
    }

    /// Returns the address of the byte at `offset` in a region of this rank.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRegion`]; [`AcpError::OutOfBounds`].
    pub fn address(&self, key: Key, offset: usize) -> Result<GlobalAddress> {
        let bytes = self.try_with(|state| {
            let own = (key.0.rank() == state.me).then(|| state.own.get(key.0.tag())).flatten();
            own.map(|own| own.region.len()).ok_or(AcpError::NoSuchRegion { address: key.0 })
        })?;
        match key.0.checked_add(offset as u64) {
            Some(address) if offset <= bytes => Ok(address),
            _ => Err(AcpError::out_of_bounds(key.0, offset as u64, bytes as u64)),
        }
    }

    /// Returns the region and the offset of an address of this rank; `None` for other ranks'
    /// addresses, and for addresses outside its registered regions.
    pub fn query(&self, address: GlobalAddress) -> Option<(Key, usize)> {
        let own = self.with(|state| {
            let own = (address.rank() == state.me).then(|| state.own.get(address.tag())).flatten()?;
            let key = Key(GlobalAddress::new(state.me, own.colour, address.tag(), 0));
            (address.offset() <= own.region.len() as u64).then_some((key, address.offset() as usize))
        });
        own.ok().flatten()
    }

    pub(crate) fn checked_colour(&self, colour: usize) -> Result<u8> {
        let colours = self.colours();
        if colour < colours { Ok(colour as u8) } else { Err(AcpError::NoSuchColour { colour, colours }) }
    }
}

fn fits(state: &State, tag: Tag, bytes: usize) -> Result<()> {
    if bytes as u64 <= MAX_REGION_BYTES {
        return Ok(());
    }
    let address = GlobalAddress::new(state.me, 0, tag, 0);
    Err(AcpError::out_of_bounds(address, bytes as u64, MAX_REGION_BYTES))
}
