//! The steps of the locks done wrong, as a [`Mutant`] does them.

mod fair;
mod rp;

pub(crate) use explore::mutant::{Mutant, Mutation};
pub(crate) use fair::Fair;
pub(crate) use rp::{Rp, Step, Subject, assert_idle};
