#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod coordinator;
mod detect;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(test, not(fuzzing)))]
mod fuzz;
mod handshake;
mod hello;
mod inherited;
mod launcher;
mod pmi;
pub mod pmix;
mod rank_list;
mod rendezvous;
mod secret;
mod secret_file;
mod session;
mod this_program;
mod wire;

pub use coordinator::{Abort, Coordinator, End, Outcome, Plan, StartError, Succession};
pub use detect::{BadNodeList, CLUSTER, Cluster, DetectError, Found, NotACluster, SecretAt, Slurm, detect, node_list};
pub use error::{Error, Refusal};
pub use hello::{Hello, Welcome};
pub use launcher::{Bootstrap, LauncherError};
pub use pmi::Pmi1;
pub use rendezvous::{
    COORDINATOR, How, Interface, Rendezvous, RendezvousError, interface_name, listening_address, rendezvous,
    rendezvous_over, serve_if_asked,
};
pub use secret::{BadSecret, Secret};
pub use secret_file::{SECRET_FILE, SecretFileError};
pub use session::{Event, Patience, Session, Speaker};
pub use this_program::ThisProgram;
pub use wire::{ITEM_LIMIT, TEXT_LIMIT};
