//! Registered memory: regions and their keys, resolved places, typed pointers, registered existing
//! memory, protected memory.

mod keep_alive;
mod locked;
mod part;
mod place;
mod pointer;
mod region;
mod registered;

pub use keep_alive::KeepAlive;
pub use locked::{AccessPolicy, Keyring, LockedMemory, Mapped};
pub use part::Part;
pub use place::{Place, SHORT};
pub use pointer::{LocalSpan, LocalWord, RemoteSpan, RemoteWord};
pub use region::{Region, RegionKey, RemoteAddr};
pub use registered::{OwnedMemory, RegisterError, Registered, Uses};
