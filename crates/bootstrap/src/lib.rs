#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod coordinator;
mod detect;
mod error;
mod handshake;
mod hello;
mod secret;
mod session;
mod wire;

pub use coordinator::{Abort, Coordinator, End, Outcome, Plan, StartError};
pub use detect::{BadNodeList, CLUSTER, Cluster, DetectError, Found, NotACluster, SecretAt, Slurm, detect, node_list};
pub use error::{Error, Refusal};
pub use hello::{Hello, Welcome};
pub use secret::{BadSecret, Secret};
pub use session::{Event, Session, Speaker};
pub use wire::{ITEM_LIMIT, TEXT_LIMIT};
