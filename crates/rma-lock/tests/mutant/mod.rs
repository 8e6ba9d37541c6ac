//! The steps of the locks done wrong, as a [`Mutant`] does them.

mod fair;
mod rp;
mod step;
mod words;

pub(crate) use explore::mutant::{Mutant, Mutation};
pub(crate) use fair::Fair;
pub(crate) use rp::Rp;
pub(crate) use step::{Step, Subject};
pub(crate) use words::assert_idle;
