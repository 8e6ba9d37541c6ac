//! Registered memory: regions and their keys, resolved places, typed pointers, registered existing
//! memory, memory without a key.

mod locked;
mod part;
mod place;
mod pointer;
mod region;
mod registered;

pub use locked::{Keyring, LockedMemory, Mapped, Pact};
pub use part::Part;
pub use place::{Anchor, Place, SHORT};
pub use pointer::{LocalSpan, LocalWord, RemoteSpan, RemoteWord};
pub use region::{Region, RegionKey, RemoteAddr};
pub use registered::{OwnedMemory, RegisterError, Registered, Uses};
